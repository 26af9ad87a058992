# frozen_string_literal: true

module Heddle
  module Accelerate
    module NetHTTP
      # Net::HTTPHeader#add_field, which is called for each field of a response.
      #
      # @private
      module Fields
        # What every version takes as it is.
        NAME = /\A[!-9;-~]{1,1000}\z/
        LINE_ENDS = /[\r\n]/
        VALUE_SIZE = 60_000
        private_constant :NAME, :LINE_ENDS, :VALUE_SIZE

        class << self
          # @private
          def usual?(key, val) = name?(key) && value?(val)

          private

          def name?(key) = key.instance_of?(String) && key.ascii_only? && NAME.match?(key)

          def value?(val)
            val.instance_of?(String) && val.bytesize <= VALUE_SIZE && val.ascii_only? && !LINE_ENDS.match?(val)
          end
        end

        # @see https://docs.ruby-lang.org/en/master/Net/HTTPHeader.html#method-i-add_field
        def add_field(key, val)
          name = key.downcase if Fields.usual?(key, val)
          return __heddle_plain_add_field(key, val) if name.nil? || @header.key?(name)

          @header[name] = [val]
        end
      end
    end
  end
end
