# frozen_string_literal: true

require_relative "ruby_info"

module Tools
  # Finds the Rubies that Heddle can work with.
  module Rubies
    module_function

    # The Ruby that the project uses: HEDDLE_RUBY, else the first on PATH that is new enough, else one that bin/setup
    # built.
    # @return [RubyInfo, nil]
    def choose(console, request = self.request)
      return named(request) if request

      on_path(console) || cached.find { |info| info.series == "3.3" } || cached.last
    end

    # @return [String, nil] what HEDDLE_RUBY says, as a path
    def request
      name = ENV.fetch("HEDDLE_RUBY", "")
      return if name.empty?

      name.start_with?("/") ? name : Tools.which(name) || name
    end

    # @param name [String] a path, or a command on PATH
    # @raise [Problem] when that is no Ruby for Heddle
    def named(name)
      path = name.include?("/") ? File.expand_path(name) : Tools.which(name) || name
      info = RubyInfo.at(path) or raise Problem, "#{path} is not a Ruby that runs#{hint(name)}"
      raise Problem, "#{path} (Ruby #{info.version}) #{info.unfit}" if info.unfit

      info
    end

    def hint(name)
      return if !name.match?(/\A\d+\.\d+\z/) || Tools.newer?(OLDEST_RUBY[/\A\d+\.\d+/], name)

      ": bin/setup --ruby #{name} builds one, if Debian has it"
    end

    # @return [Array<RubyInfo>] the Rubies that bin/setup built, oldest first
    def cached
      Dir.glob(File.join(Tools.cache, "rubies/*/bin/ruby")).filter_map { |path| RubyInfo.at(path) }
        .reject(&:unfit).sort_by { |info| info.version.scan(/\d+/).map(&:to_i) }
    end

    # @param name [String] such as "3.4"
    # @return [RubyInfo, nil] the newest of that series which bin/setup built
    def of_series(name)
      cached.reverse.find { |info| info.series == name }
    end

    # @return [RubyInfo, nil] the same, or else the first one of that series on PATH
    def built_or_on_path(series)
      of_series(series) || all_on_path.find { |info| info.series == series && info.unfit.nil? }
    end

    # All that the tests run on: HEDDLE_RUBIES, else HEDDLE_RUBY, else the project's and the built ones.
    def for_tests(current)
      names = ENV.fetch("HEDDLE_RUBIES", "").split
      return names.map { |name| named(name) } unless names.empty?
      return [current] if request

      [current, *cached].uniq(&:exe)
    end

    def on_path(console)
      fit, unfit = all_on_path.partition { |info| info.unfit.nil? }
      unfit.each do |info|
        console.say("not using #{info}: it #{info.unfit}") unless Tools.newer?(OLDEST_RUBY, info.version)
      end
      fit.first
    end

    def all_on_path
      paths = ENV.fetch("PATH", "").split(":").uniq.map { |folder| File.join(folder, "ruby") }
      paths.filter_map { |path| RubyInfo.at(path) }.uniq(&:exe)
    end
  end
end
