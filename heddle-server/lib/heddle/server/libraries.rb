# frozen_string_literal: true

module Heddle
  # Loads the gems that the server is built on. Heddle itself needs no other gem.
  #
  # @private
  module ServerLibraries
    NEEDED = [["protocol/http1", "protocol-http1", "~> 0.30"], ["protocol/rack", "protocol-rack", "~> 0.15"]].freeze

    HTTP2 = ["protocol/http2", "protocol-http2", "~> 0.29"].freeze

    class << self
      # @param wanted [Boolean, nil] nil: if the gem is there
      # @return [Boolean] whether the server speaks HTTP/2
      # @raise [LoadError]
      def http2?(wanted)
        return false if wanted == false || (wanted.nil? && Gem::Specification.find_all_by_name(*HTTP2.drop(1)).empty?)

        load([HTTP2])
        require_relative "http2"
        true
      end

      # @param libraries [Array<Array(String, String, String)>] for each library a file, its gem, and the versions that
      #   work
      # @param hint [String]
      # @raise [LoadError] whose message names all gems that are missing
      def load(libraries, hint = "")
        missing = libraries.filter_map { |file, gem, version| lack(file, gem, version) }
        return if missing.empty?

        names, arguments = missing.transpose
        raise LoadError, "Heddle::Server needs the gem#{"s" if names.size > 1} #{names.join(" and ")}: put " \
                         "#{names.size > 1 ? "them" : "it"} into the Gemfile, or run " \
                         "`gem install #{arguments.join(" ")}`#{hint}"
      end

      private

      # @return [Array(String, String), nil] the missing gem with its version, and the argument for `gem install`
      def lack(file, gem, version)
        require file
        loaded = Gem.loaded_specs[gem]&.version
        return if loaded.nil? || Gem::Requirement.new(version).satisfied_by?(loaded)

        ["#{gem} #{version} (this is #{loaded})", "#{gem}:'#{version}'"]
      rescue LoadError => e
        raise unless e.path == file

        ["#{gem} #{version}", "#{gem}:'#{version}'"]
      end
    end

    load(NEEDED, " (for HTTP/2 also #{HTTP2[1]}:'#{HTTP2[2]}')")
  end
  private_constant :ServerLibraries
end
