# frozen_string_literal: true

require "protocol/http2/error"

module Heddle
  class Server
    class HTTP2 < ::Protocol::HTTP2::Server
      # The header fields of a block as they are decompressed. A block of a few bytes may stand for many fields: those
      # beyond the limit are not kept, and far beyond it the connection ends.
      #
      # @private
      class FieldList < Array
        # What a field takes besides its bytes (RFC 9113, 6.5.2).
        OVERHEAD = 32
        FAR = 8
        private_constant :OVERHEAD, :FAR

        # @param limits [Limits]
        def initialize(limits)
          super()
          @limits = limits
          @count = 0 # (a cookie may come in many parts: they are one header, and only their size is bounded)
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

        # @return [Boolean] whether it is incomplete
        def too_large? = @count > @limits.headers + PSEUDO || @bytesize > @limits.head_size

        # Those that begin with a colon.
        PSEUDO = 4
        private_constant :PSEUDO

        private

        # @return [Boolean] whether it is another part of one
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
