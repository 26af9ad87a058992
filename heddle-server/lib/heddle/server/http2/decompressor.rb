# frozen_string_literal: true

require "protocol/hpack"

module Heddle
  class Server
    class HTTP2 < ::Protocol::HTTP2::Server
      # Decompresses a block of header fields. The class of protocol-hpack limits neither the length of an integer nor
      # the number of changes of the table's size (RFC 7541, 5.1 and 4.2).
      #
      # @private
      class Decompressor < ::Protocol::HPACK::Decompressor
        # Bytes of an integer after its first one. Their 28 bits are more than any length that is allowed here needs.
        INTEGER_BYTES = 4
        # Changes of the table's size at the beginning of a block: one to the smallest size that was allowed, and one to
        # the last size.
        SIZE_CHANGES = 2
        private_constant :INTEGER_BYTES, :SIZE_CHANGES

        def read_integer(bits)
          most = (1 << bits) - 1
          value = next_byte & most
          return value if value < most

          INTEGER_BYTES.times do |i|
            byte = next_byte
            value += (byte & 127) << (7 * i)
            return value if byte < 128
          end
          raise ::Protocol::HPACK::CompressionError, "an integer is too long"
        end

        def read_header
          changes_size? ? count_size_change : @changes = SIZE_CHANGES
          super
        end

        private

        def next_byte = read_byte || raise(::Protocol::HPACK::CompressionError, "the block is cut off")

        def changes_size? = peek_byte & 0xe0 == 0x20

        def count_size_change
          @changes = (@changes || 0) + 1
          return if @changes <= SIZE_CHANGES

          raise ::Protocol::HPACK::CompressionError, "a change of the table's size that is not allowed here"
        end
      end
    end
  end
end
