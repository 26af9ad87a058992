# frozen_string_literal: true

require_relative "../rubies/rubies"
require_relative "gem_folder"
require_relative "extension"

module Tools
  # What bin/setup decided, kept for bin/ruby and for the next bin/setup. There
  # is one for each value of HEDDLE_RUBY.
  class State
    def initialize(request)
      @folder = File.join(Tools.tmp, "state", request || "default")
    end

    # @return [RubyInfo, nil] the Ruby of the last set-up, if it is still the same
    def ruby
      fields = JSON.parse(File.read(File.join(@folder, "ruby.json"))).transform_keys(&:to_sym)
      info = RubyInfo.new(**fields)
      info if info.same? && info.unfit.nil?
    rescue SystemCallError, JSON::ParserError, ArgumentError, TypeError
      nil
    end

    def known?
      File.exist?(shell)
    end

    def write(info, gems, extension)
      Tools.write_whole(File.join(@folder, "ruby.json"), JSON.generate(info.to_h))
      Tools.write_whole(shell, <<~SHELL)
        heddle_ruby=#{quote(info.exe)}
        heddle_gems=#{quote(gems.path)}
        heddle_native=#{quote(extension.target)}
      SHELL
    end

    private

    def shell
      File.join(@folder, "state.sh")
    end

    def quote(text)
      "'#{text.gsub("'", "'\\\\''")}'"
    end
  end
end
