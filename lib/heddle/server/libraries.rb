# frozen_string_literal: true

module Heddle
  # Loads what the server is built on; Heddle itself needs no other gem.
  #
  # @private
  module ServerLibraries
    NEEDED = { "protocol/http1" => ["protocol-http1", "~> 0.30"],
               "protocol/rack" => ["protocol-rack", "~> 0.15"] }.freeze

    HTTP2 = ["protocol/http2", "protocol-http2", "~> 0.29"].freeze

    class << self
      # @param wanted [Boolean, nil] nil: if the gem is there
      # @return [Boolean] whether the server speaks HTTP/2
      # @raise [LoadError]
      def http2?(wanted)
        return false if wanted == false || (wanted.nil? && Gem::Specification.find_all_by_name(*HTTP2.drop(1)).empty?)

        load(*HTTP2)
        require_relative "http2"
        true
      end

      def load(file, gem, version)
        require file
        loaded = Gem.loaded_specs[gem]&.version
        return if loaded.nil? || Gem::Requirement.new(version).satisfied_by?(loaded)

        raise LoadError, "Heddle::Server needs #{gem} #{version}, and this is #{gem} #{loaded}"
      rescue LoadError => e
        raise unless e.path == file

        raise LoadError, "Heddle::Server needs the gem #{gem} (#{version}): put it into the Gemfile"
      end
    end

    NEEDED.each { |file, (gem, version)| load(file, gem, version) }
  end
  private_constant :ServerLibraries
end
