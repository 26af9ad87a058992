# frozen_string_literal: true

require_relative "setup/setup"
require_relative "setup/uninstall"

module Tools
  # bin/setup
  class SetupCommand
    HELP = <<~TEXT.freeze
      bin/setup                 sets up what this project needs; quick when there is nothing to do
      bin/setup --ruby 3.4      adds a Ruby of that series for the tests, where Debian has its source
      bin/setup --rivals        also installs, where possible, the other schedulers that bench/ compares with
      bin/setup --uninstall     lists and removes what it made
      bin/setup --program       enough to run Heddle: missing gems are told of, and are no failure

      It takes the Ruby that HEDDLE_RUBY names, or the first on PATH that is #{OLDEST_RUBY} or newer, or builds
      Ruby 3.3 from Debian's source package. What it makes is in #{Tools.cache}
      and, ignored by git, in tmp/, build/ and lib/heddle/<Ruby's ABI>/. All output is on stderr.
    TEXT

    def initialize(arguments)
      @arguments = arguments
    end

    def run
      case @arguments
      in [] then ready(Setup.new.run)
      in ["--program"] then Setup.new(lenient: true).run
      in ["--ruby", /\A\d+\.\d+\z/ => series] then ready(Setup.new.add(series))
      in ["--rivals"] then rivals
      in ["--uninstall"] then Uninstall.new.run
      in ["--help" | "-h"] then puts HELP
      else
        warn HELP
        return 2
      end
      0
    end

    private

    def ready(info)
      warn "heddle: ready: #{info}"
    end

    def rivals
      setup = Setup.new
      info = setup.run
      GemFolder.new(info, console: setup.console).install_rivals.each { |line| setup.console.say(line) }
    end
  end
end
