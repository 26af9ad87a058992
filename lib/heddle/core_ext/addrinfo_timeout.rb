# frozen_string_literal: true

module Heddle
  module CoreExt
    # Ruby 4.0 heeds a timeout of Addrinfo.getaddrinfo, but not when a scheduler resolves the name.
    module AddrinfoTimeout
      # @see https://docs.ruby-lang.org/en/master/Addrinfo.html#method-c-getaddrinfo
      def getaddrinfo(host, port = nil, *rest, timeout: nil)
        scheduler = Fiber.current_scheduler
        return super unless timeout.is_a?(Numeric) && timeout.positive? && scheduler.is_a?(Scheduler)

        message = "user specified timeout for #{host} port #{port}"
        scheduler.timeout_after(timeout, IO::TimeoutError, message) { super(host, port, *rest) }
      end
    end
  end
end

Addrinfo.singleton_class.prepend(Heddle::CoreExt::AddrinfoTimeout)
