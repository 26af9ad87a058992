# frozen_string_literal: true

module Heddle
  module Accelerate
    module NetHTTP
      # The fields of a response. When the whole header has come and is as usual, they are found in one go, and else
      # line by line as before. (HTTPBytes is in C.)
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
    end
  end
end
