# frozen_string_literal: true

module Heddle
  module Accelerate
    module NetHTTP
      # Replaces Net::HTTP.start, which Net::HTTP.get and similar methods also use. To set the options, Net::HTTP looks
      # through the names of all methods of the new object, which takes a third of a whole request.
      #
      # @private
      module Start
        SETTERS = Ractor.make_shareable(
          ::Net::HTTP.public_instance_methods.grep(/\A\w+=\z/).to_h { |name| [name.to_s.chop.to_sym, name] }
        )
        private_constant :SETTERS

        # @see https://docs.ruby-lang.org/en/master/Net/HTTP.html#method-c-start
        def start(address, *arguments, &block)
          options = arguments.last
          unless equal?(::Net::HTTP) && options.instance_of?(Hash) && options.all? { |name, _| SETTERS.key?(name) }
            return __heddle_plain_start(address, *arguments, &block)
          end

          port, proxy, *rest = *arguments[...-1]
          proxy = :ENV if arguments.size < 3
          http = new(address, port || (https_default_port if options[:use_ssl]), proxy, *rest.first(3))
          http.ipaddr = options[:ipaddr] if options[:ipaddr]
          http.verify_mode = OpenSSL::SSL::VERIFY_PEER if options[:use_ssl] && !options.key?(:verify_mode)
          options.each { |name, value| http.__send__(SETTERS[name], value) }
          http.start(&block)
        end
      end
    end
  end
end
