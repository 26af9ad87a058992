# frozen_string_literal: true

require_relative "../console"
require_relative "../lock"
require_relative "../rubies/ruby_build"
require_relative "state"

module Tools
  # Brings one Ruby, its gems and the extension into being. Every part looks at
  # what is there already, so a run that was interrupted is simply run again.
  class Setup
    attr_reader :console

    # @param request [String, nil] path of the Ruby to use
    # @param lenient [Boolean] whether missing gems are only reported: Heddle itself needs none
    def initialize(request: Rubies.request, console: Console.new, lenient: false)
      @request = request
      @console = console
      @lenient = lenient
      @state = State.new(request)
    end

    # Sets up the project's own Ruby.
    # @return [RubyInfo]
    def run
      info = @state.ruby
      return info if info && @state.known? && complete?(info)

      console.say("setting up what this project needs, once") unless info
      info ||= Rubies.choose(console, @request) || build("3.3")
      equip(info) { @state.write(*parts(info)) }
      info
    end

    # Adds a Ruby of another series, beside the project's own.
    # @return [RubyInfo]
    def add(series)
      info = Rubies.of_series(series) || build(series)
      equip(info)
      info
    end

    # Makes gems and extension for a Ruby that is there. The block is called when
    # that Ruby can be used, be it without the gems.
    def equip(info)
      gems, extension = parts(info).drop(1)
      trouble = trouble_with { gems.install }
      extension.build
      yield if block_given?
      return unless trouble
      raise trouble unless @lenient

      trouble.report.each { |line| console.say(line) }
    end

    def complete?(info)
      parts(info).drop(1).all?(&:current?)
    end

    private

    def parts(info)
      [info, GemFolder.new(info, console: console), Extension.new(info, console: console)]
    end

    # Missing gems keep nobody from compiling.
    def trouble_with
      yield
      nil
    rescue Problem => e
      e
    end

    def build(series)
      unless Apt.here?
        raise Problem, "there is no Ruby >= #{OLDEST_RUBY}, and no apt to fetch one's source with: " \
                       "install one and name it, HEDDLE_RUBY=/path/to/ruby"
      end

      Lock.hold(File.join(Tools.cache, "lock"), console: console) { Rubies.of_series(series) || build_now(series) }
    end

    def build_now(series)
      builder = RubyBuild.new(series, console: console)
      console.say("no Ruby #{series} here: building one from Debian's source (2 to 5 minutes, once)")
      builder.build
    rescue Problem => e
      raise Problem.new(e.message, log: e.log, remedies: e.remedies | builder.remedies | later_steps)
    end

    def later_steps
      names = File.read(File.join(ROOT, "Gemfile")).scan(/^\s*gem "([^"]+)"/).flatten
      ["missing: development gems (#{names.join(", ")}): installed by bin/setup once Ruby is there",
       "missing: the compiled extension: made by bin/setup once Ruby is there"]
    end
  end
end
