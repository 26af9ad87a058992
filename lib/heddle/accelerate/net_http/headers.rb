# frozen_string_literal: true

module Heddle
  module Accelerate
    module NetHTTP
      # Finds the fields of a response. When the whole header has arrived and has the usual form, they are found in one
      # go, and else line by line as before. HTTPBytes is in C.
      #
      # @private
      module Header
        # @private
        module Buffer
          # Takes the rest of a header out of the buffer.
          #
          # @return [Array<String>, nil] name, value, name, value ...
          def heddle_fields
            return if @debug_output || @rbuf_empty

            fields = HTTPBytes.fields(@rbuf, @rbuf_offset) or return
            @rbuf_offset = fields.pop
            @rbuf_empty = @rbuf_offset == @rbuf.bytesize
            rbuf_flush
            fields
          end
        end

        private

        def each_response_header(sock, &)
          fields = sock.heddle_fields if sock.instance_of?(::Net::BufferedIO)
          return __heddle_plain_each_response_header(sock, &) unless fields

          index = 0
          while index < fields.size
            yield(fields[index], fields[index + 1])
            index += 2
          end
        end
      end

      # Net::HTTPHeader#add_field, which is called for each field of a response.
      #
      # @private
      module Fields
        # A name that every version accepts unchanged.
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

      # Writes the names of fields as Net::HTTP sends them: "accept-encoding" is sent as "Accept-Encoding".
      #
      # @private
      module FieldNames
        COMMON = %w[
          Accept Accept-Charset Accept-Encoding Accept-Language Authorization Cache-Control Connection Content-Encoding
          Content-Language Content-Length Content-Type Cookie Date Depth Expect From Host If-Match If-Modified-Since
          If-None-Match If-Range If-Unmodified-Since Keep-Alive Location Origin Pragma Proxy-Authorization Range Referer
          Te Trailer Transfer-Encoding Upgrade User-Agent Via X-Forwarded-For X-Forwarded-Proto X-Request-Id
          X-Requested-With
        ].to_h { |name| [name.downcase, name] }.freeze
        Ractor.make_shareable(COMMON)
        private_constant :COMMON

        private

        def capitalize(name)
          common = COMMON[name] if name.instance_of?(String)
          common ? common.dup.force_encoding(name.encoding) : __heddle_plain_capitalize(name)
        end
      end
    end
  end
end
