# frozen_string_literal: true

module Heddle
  module CoreExt
    # Applies the timeout of Addrinfo.getaddrinfo also when a scheduler resolves the name, where Ruby 4.0 ignores it.
    module AddrinfoTimeout
      # @see https://docs.ruby-lang.org/en/master/Addrinfo.html#method-c-getaddrinfo
      def getaddrinfo(*arguments, **options)
        timeout = options[:timeout]
        scheduler = Scheduler.current
        unless scheduler && timeout.is_a?(Numeric) && timeout.positive?
          return __heddle_timed_getaddrinfo(*arguments, **options)
        end

        host, port = arguments
        scheduler.timeout_after(timeout, IO::TimeoutError, "user specified timeout for #{host} port #{port}") do
          __heddle_timed_getaddrinfo(*arguments, **options.except(:timeout))
        end
      end
    end
  end
end
