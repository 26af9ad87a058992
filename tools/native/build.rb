# frozen_string_literal: true

require_relative "../console"
require_relative "../release/gem_file"
require_relative "binary"

module Tools
  module Native
    # `rake gem:native`: a gem for each platform, with a compiled file for each minor version of Ruby.
    class Build
      # The Rubies that the gems are made for. Others get the gem with the sources.
      SERIES = %w[3.3 3.4 4.0].freeze

      # @param platforms [Array<String>] none: all
      # @param rubies [Array<String>] paths; none: the Rubies that bin/setup built, and the Rubies of HEDDLE_RUBIES
      def initialize(platforms: [], rubies: [], console: Console.new)
        @targets = platforms.empty? ? TARGETS.values : platforms.map { |name| Native.target(name) }
        @console = console
        @infos = newest(rubies.map { |path| Rubies.named(path) })
      end

      # @param folder [String]
      # @return [Array<String>] the paths of the gems
      def build(folder)
        @targets.map do |target|
          files = @infos.map { |info| Binary.new(info, target, console: @console) }
          binaries = files.to_h { |file| [file.name, file.build] }
          gem = GemFile.new(GemFile::GEMSPECS.first).compiled(target.name, binaries, requirement).build(folder)
          @console.say("#{gem.delete_prefix("#{ROOT}/")} has #{binaries.size} compiled files")
          gem
        end
      end

      # Outside of these, RubyGems takes the gem with the sources.
      #
      # @return [Array<String>]
      def requirement
        oldest, newest = @infos.map(&:series).minmax_by { |series| numbers(series) }
        oldest = OLDEST_RUBY if oldest == OLDEST_RUBY[/\A\d+\.\d+/]
        major, minor = numbers(newest)
        [">= #{oldest}", "< #{major}.#{minor + 1}.dev"]
      end

      private

      # One Ruby for each minor version, without a gap: a gem that says "3.3 to 4.0" has all between.
      def newest(given)
        infos = given.empty? ? [*Rubies.cached, *named_by_environment] : given
        found = infos.group_by(&:series).slice(*SERIES)
        found.transform_values! { |some| some.max_by { |one| numbers(one.version) } }
        wanted = SERIES.select { |series| found.key?(series) }
        if wanted.empty? || wanted != SERIES[SERIES.index(wanted.first), wanted.size]
          raise Problem, "the gems need Rubies without a gap: found #{wanted.join(", ")} of #{SERIES.join(", ")}"
        end

        @console.say("no Ruby #{(SERIES - wanted).join(", ")} is here: it will use the sources") if wanted != SERIES
        found.values_at(*wanted)
      end

      def named_by_environment = ENV.fetch("HEDDLE_RUBIES", "").split.map { |name| Rubies.named(name) }

      def numbers(version) = version.scan(/\d+/).map { |number| Integer(number, 10) }
    end
  end
end
