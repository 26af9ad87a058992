# frozen_string_literal: true

module Heddle
  # Quotes objects of the program in Heddle's own messages: their methods may fail, and the encodings of their texts may
  # not fit together.
  module Wording
    # @param object [Object]
    # @param method [Symbol] the method that returns the text
    # @return [String] in UTF-8; the name of the class if the method fails
    def self.of(object, method = :to_s)
      in_utf8(object.public_send(method).to_s)
    rescue StandardError
      object.class.to_s
    end

    # @return [String] the text in one line, without characters that would change a terminal
    def self.in_line(object, method = :to_s)
      text = of(object, method).scrub { |bytes| bytes.dump[1..-2] }
      text.gsub(/[[:cntrl:]]/) { |character| character.dump[1..-2] }
    end

    # @return [String] a message that ends with the reason, unless that is nil
    def self.with_reason(message, reason) = reason.nil? ? message : "#{message}: #{of(reason)}"

    # @param text [String]
    # @return [String]
    def self.in_utf8(text)
      return text.dup.force_encoding(Encoding::UTF_8) if text.encoding == Encoding::BINARY

      text.encode(Encoding::UTF_8, invalid: :replace, undef: :replace)
    end
  end
  private_constant :Wording
end
