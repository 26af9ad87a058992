# frozen_string_literal: true

module Heddle
  module Accelerate
    module NetHTTP
      # Reads a body of known length as a whole: its bytes go from the socket into the string, without a buffer between
      # them. HTTPBytes is in C.
      #
      # @private
      module Body
        # A smaller body arrives with the header, or is read in one go as well.
        LARGE = 16 * 1024
        # Bytes beyond the end of the body go into the buffer, as with plain Net::HTTP. Before its next request
        # Net::HTTP looks at the socket, where it must find the end of the connection and not these bytes.
        SURPLUS = ::Net::BufferedIO::BUFSIZE
        ENCODINGS = Ractor.make_shareable([Encoding::BINARY, Encoding::UTF_8, Encoding::US_ASCII])
        private_constant :LARGE, :SURPLUS, :ENCODINGS

        # @private
        module Buffer
          private

          def heddle_direct?(len, dest)
            len.is_a?(Integer) && len - rbuf_size > LARGE && dest.instance_of?(String) && dest.empty? &&
              @io.instance_of?(TCPSocket) && !@debug_output && ENCODINGS.include?(dest.encoding)
          end

          def heddle_receive(len, dest, ignore_eof)
            while (missing = len - dest.bytesize).positive?
              case HTTPBytes.receive(@io, dest, missing + SURPLUS)
              when :wait_readable
                @io.wait_readable(@read_timeout) or raise ::Net::ReadTimeout, @io
              when nil
                return if ignore_eof

                raise EOFError, "end of file reached"
              when false
                return __heddle_plain_read(missing, dest, ignore_eof)
              end
            end
            heddle_keep(dest.slice!(len..)) if missing.negative?
          end

          def heddle_keep(surplus)
            @rbuf << surplus
            @rbuf_empty = false
          end
        end

        # @private
        def read(len, dest = "".b, ignore_eof = false) # rubocop:disable Style/OptionalBooleanParameter -- Ruby's own
          return __heddle_plain_read(len, dest, ignore_eof) unless heddle_direct?(len, dest)

          encoding = dest.encoding
          dest.force_encoding(Encoding::BINARY)
          begin
            dest << rbuf_consume if rbuf_size.positive?
            heddle_receive(len, dest, ignore_eof)
          ensure
            dest.force_encoding(encoding) if dest.ascii_only?
          end
          dest
        end
      end
    end
  end
end
