# frozen_string_literal: true

require "digest"

module Heddle
  module Accelerate
    # Recognizes by its text whether a method is the version for which a faster one was written.
    #
    # @private
    module KnownMethod
      PLACE = /\A(?<owner>.+)(?<kind>[.#])(?<name>[^.#]+)\z/
      private_constant :PLACE

      class << self
        # @param place [String] "Net::HTTP#get", or "Net::HTTP.get" for a method of the class itself
        # @return [Module] the module that defines the method
        def owner(place)
          parts = PLACE.match(place)
          owner = Object.const_get(parts[:owner])
          parts[:kind] == "." ? owner.singleton_class : owner
        end

        # @param place [String]
        # @return [String, nil] a digest of the text of the method, without comments and indentation; nil if it cannot
        #   be read, or if the method is not the owner's own
        def digest(place)
          owner = owner(place)
          method = owner.instance_method(PLACE.match(place)[:name])
          return unless method.owner.equal?(owner)

          text = text_of(*method.source_location&.first(2))
          Digest::SHA256.hexdigest(text)[0, 12] if text
        rescue NameError
          nil
        end

        private

        def text_of(file = nil, line = nil)
          return unless file && File.readable?(file)

          lines = File.foreach(file).lazy.drop(line - 1)
          indentation = lines.first.to_s[/\A */]
          text = []
          lines.each do |one|
            text << one.sub(/\s+#\s*:nodoc:.*/, "").strip unless one.match?(/\A\s*(#|$)/)
            return text.join("\n") if one.start_with?("#{indentation}end")
          end
          nil
        end
      end
    end
    private_constant :KnownMethod
  end
end
