# frozen_string_literal: true

require_relative "../connect"

module Heddle
  module CoreExt
    # Socket.tcp(hostname) starts two threads for each name. The parameters are Ruby's own, for libraries ask for them.
    module SocketTCP
      if RUBY_VERSION < "3.4"
        # @see https://docs.ruby-lang.org/en/3.3/Socket.html#method-c-tcp
        def tcp(host, port, local_host = nil, local_port = nil, connect_timeout: nil, resolv_timeout: nil, &block)
          options = { connect_timeout:, resolv_timeout: }
          SocketTCP.connect(self, [host, port, local_host, local_port], options, block)
        end
      elsif RUBY_VERSION < "4.0"
        # @see https://docs.ruby-lang.org/en/3.4/Socket.html#method-c-tcp
        def tcp(host, port, local_host = nil, local_port = nil, connect_timeout: nil, resolv_timeout: nil,
                fast_fallback: tcp_fast_fallback, &block)
          options = { connect_timeout:, resolv_timeout:, fast_fallback: }
          SocketTCP.connect(self, [host, port, local_host, local_port], options, block)
        end
      else
        # @see https://docs.ruby-lang.org/en/master/Socket.html#method-c-tcp
        def tcp(host, port, local_host = nil, local_port = nil, connect_timeout: nil, resolv_timeout: nil,
                open_timeout: nil, fast_fallback: tcp_fast_fallback, &block)
          options = { connect_timeout:, resolv_timeout:, open_timeout:, fast_fallback: }
          SocketTCP.connect(self, [host, port, local_host, local_port], options, block)
        end
      end

      # @private
      def self.connect(owner, arguments, options, block)
        target = Connect.socket_target(arguments, options)
        return owner.__send__(:__heddle_tcp, *arguments, **options, &block) unless target

        target.open(block) { |*own, **rest| owner.__send__(:__heddle_tcp, *own, **rest, &block) }
      end
    end
  end
end

# TCPSocket.new(hostname) waits in a select that no hook sees, from Ruby 3.4 on: every fiber of the thread stands
# still. (The method is in ext/heddle/glue/tcp_connect.c. After service_names.)
Heddle::CoreExt.replace(TCPSocket, Heddle::CoreExt::TCPSocketConnect, prefix: "__heddle_numeric_")
Heddle::CoreExt.replace(Socket.singleton_class, Heddle::CoreExt::SocketTCP)
