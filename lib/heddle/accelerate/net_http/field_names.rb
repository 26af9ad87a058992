# frozen_string_literal: true

module Heddle
  module Accelerate
    module NetHTTP
      # How the names of fields are written: "accept-encoding" is sent as "Accept-Encoding".
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
