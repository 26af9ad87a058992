# frozen_string_literal: true

require_relative "../connect"
require_relative "../ruby_features"

module Heddle
  module CoreExt
    # Socket.tcp(hostname) starts two threads for each name. The parameters are Ruby's own, for libraries ask for them.
    module SocketTCP
      if RubyFeatures::OPEN_TIMEOUT_IS_KNOWN
        # @see https://docs.ruby-lang.org/en/master/Socket.html#method-c-tcp
        def tcp(host, port, local_host = nil, local_port = nil, connect_timeout: nil, resolv_timeout: nil,
                open_timeout: nil, fast_fallback: tcp_fast_fallback, &block)
          options = { connect_timeout:, resolv_timeout:, open_timeout:, fast_fallback: }
          SocketTCP.connect(self, [host, port, local_host, local_port], options, block)
        end
      elsif RubyFeatures::ADDRESSES_ARE_RACED
        # @see https://docs.ruby-lang.org/en/3.4/Socket.html#method-c-tcp
        def tcp(host, port, local_host = nil, local_port = nil, connect_timeout: nil, resolv_timeout: nil,
                fast_fallback: tcp_fast_fallback, &block)
          options = { connect_timeout:, resolv_timeout:, fast_fallback: }
          SocketTCP.connect(self, [host, port, local_host, local_port], options, block)
        end
      else
        # @see https://docs.ruby-lang.org/en/3.3/Socket.html#method-c-tcp
        def tcp(host, port, local_host = nil, local_port = nil, connect_timeout: nil, resolv_timeout: nil, &block)
          options = { connect_timeout:, resolv_timeout: }
          SocketTCP.connect(self, [host, port, local_host, local_port], options, block)
        end
      end

      def self.connect(owner, arguments, options, block)
        target = Connect.socket_target(arguments, options)
        return owner.__send__(:__heddle_numeric_tcp, *arguments, **options, &block) unless target

        target.open(block) { |*own, **rest| owner.__send__(:__heddle_numeric_tcp, *own, **rest, &block) }
      end
    end
  end
end
