# frozen_string_literal: true

require "protocol/http2/error"

module Heddle
  class Server
    class HTTP2 < ::Protocol::HTTP2::Server
      # Collects the header fields of a block while they are decompressed. A block of a few bytes may stand for many
      # fields. Fields beyond the limit are not kept, and far beyond it the connection ends.
      #
      # @private
      class FieldList < Array
        # Bytes that a field counts for besides its own bytes (RFC 9113, 6.5.2).
        OVERHEAD = 32
        FAR = 8
        private_constant :OVERHEAD, :FAR

        # @param limits [Limits]
        def initialize(limits)
          super()
          @limits = limits
          @count = 0 # the parts of a cookie count as one header, so only their size is limited
          @bytesize = 0
          @cookie = false
        end

        def <<(field)
          @count += 1 unless cookie?(field[0])
          @bytesize += field[0].bytesize + field[1].bytesize + OVERHEAD
          return super unless too_large?
          return self unless @count > @limits.headers * FAR || @bytesize > @limits.head_size * FAR

          raise ::Protocol::HTTP2::ProtocolError.new("too many header fields", ::Protocol::HTTP2::ENHANCE_YOUR_CALM)
        end

        # @return [Array(Integer, Integer)] the number of the fields, and their bytes, as far as they are limited
        def total = [@count, @bytesize]

        # Counts the fields of the head, too, for fields after the body: the limits are those of both together.
        #
        # @param total [Array(Integer, Integer)] of the head
        # @return [FieldList] this list
        def behind(total)
          @count += total[0]
          @bytesize += total[1]
          self
        end

        # @return [Boolean] whether the list is incomplete, because a limit was exceeded
        def too_large? = @count > @limits.headers + PSEUDO || @bytesize > @limits.head_size

        # The number of fields whose names begin with a colon.
        PSEUDO = 4
        private_constant :PSEUDO

        private

        # @return [Boolean] whether the field is another part of a cookie
        def cookie?(name)
          return false unless name == "cookie"

          before = @cookie
          @cookie = true
          before
        end
      end
    end
  end
end
