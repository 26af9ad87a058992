# frozen_string_literal: true

require_relative "../internal/connect"

module Heddle
  module CoreExt
    # Replaces Socket.tcp, which starts two threads for each name. The parameters are Ruby's own, because libraries ask
    # for them.
    module SocketTCP
      keywords = Connect::OPTIONS.map { |name| "#{name}: #{name == :fast_fallback ? "tcp_fast_fallback" : "nil"}" }
      keywords = keywords.join(", ")
      options = Connect::OPTIONS.map { |name| "#{name}:" }.join(", ")
      class_eval(<<~RUBY, __FILE__, __LINE__ + 1)
        def tcp(host, port, local_host = nil, local_port = nil, #{keywords}, &block) # def tcp(host, port, ..., &block)
          SocketTCP.connect(self, [host, port, local_host, local_port], { #{options} }, block) # { timeout: }
        end
      RUBY

      def self.connect(owner, arguments, options, block)
        target = Connect.socket_target(arguments, options)
        return owner.__send__(:__heddle_numeric_tcp, *arguments, **options, &block) unless target

        target.open(block) { |*own, **rest| owner.__send__(:__heddle_numeric_tcp, *own, **rest, &block) }
      end
    end
  end
end
