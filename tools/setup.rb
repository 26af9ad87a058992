# frozen_string_literal: true

require_relative "console"
require_relative "lock"
require_relative "ruby_build"
require_relative "state"

module Tools
  # Brings one Ruby, its gems and the extension into being. Every part looks at
  # what is there already, so a run that was interrupted is simply run again.
  class Setup
    attr_reader :console

    def initialize(console: Console.new)
      @console = console
      @state = State.new(Rubies.request)
    end

    # Sets up the project's own Ruby.
    # @return [RubyInfo]
    def run
      info = @state.ruby
      return info if info && @state.known? && complete?(info)

      console.say("setting up what this project needs; later runs skip what is done")
      locked do
        info = @state.ruby || Rubies.choose(console) || build("3.3")
        @state.write(*parts(info)) if equip(info)
        info
      end
    end

    # Adds a Ruby of another series, beside the project's own.
    # @return [RubyInfo]
    def add(series)
      locked do
        info = Rubies.cached.find { |ruby| ruby.series == series } || build(series)
        equip(info)
        info
      end
    end

    # Gems and extension for a Ruby that is there.
    def equip(info)
      gems, extension = parts(info).drop(1)
      attempt { gems.install }
      extension.build
      raise @postponed if @postponed

      true
    end

    def complete?(info)
      parts(info).drop(1).all?(&:current?)
    end

    private

    def parts(info)
      [info, Gems.new(info, console: console), Extension.new(info, console: console)]
    end

    # Missing gems keep nobody from compiling; they are told of at the end.
    def attempt
      @postponed = nil
      yield
    rescue Problem => e
      @postponed = e
    end

    def build(series)
      builder = RubyBuild.new(series, console: console)
      raise Problem, "there is no Ruby >= #{OLDEST_RUBY}, and no apt to build one with: " \
                     "install one and name it, HEDDLE_RUBY=/path/to/ruby" unless Apt.here?

      console.say("no Ruby #{series} here: building one from Debian's source (2 to 5 minutes, once)")
      builder.build
    rescue Problem => e
      raise Problem.new(e.message, log: e.log, remedies: e.remedies | (builder&.remedies || []) | later_steps)
    end

    def later_steps
      names = File.read(File.join(ROOT, "Gemfile")).scan(/^\s*gem "([^"]+)"/).flatten
      ["missing: development gems (#{names.join(", ")}): installed by bin/setup once Ruby is there",
       "missing: the compiled extension: made by bin/setup once Ruby is there"]
    end

    def locked(&block)
      Lock.hold(File.join(Tools.cache, "lock"), console: console, &block)
    end
  end
end
