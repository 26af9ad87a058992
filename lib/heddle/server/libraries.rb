# frozen_string_literal: true

module Heddle
  # Loads what the server is built on; Heddle itself needs no other gem.
  #
  # @private
  module ServerLibraries
    NEEDED = { "protocol/http1" => ["protocol-http1", "~> 0.30"],
               "protocol/rack" => ["protocol-rack", "~> 0.15"] }.freeze

    NEEDED.each do |file, (gem, version)|
      require file
      loaded = Gem.loaded_specs[gem]&.version
      next if loaded.nil? || Gem::Requirement.new(version).satisfied_by?(loaded)

      raise LoadError, "Heddle::Server needs #{gem} #{version}, and this is #{gem} #{loaded}"
    rescue LoadError => e
      raise unless e.path == file

      raise LoadError, "Heddle::Server needs the gem #{gem} (#{version}): put it into the Gemfile"
    end
  end
  private_constant :ServerLibraries
end
