# frozen_string_literal: true

require "digest"
require "json"
require_relative "../command"

module Tools
  # The facts about one Ruby of this machine.
  RubyInfo = Struct.new(:exe, :version, :abi, :platform, :yjit, :header, :compiler, :mtime, keyword_init: true) do
    # @return [RubyInfo, nil] nil when there is no Ruby that runs
    def self.at(exe)
      return unless exe && File.executable?(exe)

      environment = { "RUBY_YJIT_ENABLE" => "1", "HEDDLE_LOOKING" => "1" } # the latter stops bin/ruby
      text = Tools::Command.output(exe, "--disable-gems", "-e", Tools::RUBY_PROBE, env: environment)
      fields = JSON.parse(text.to_s.lines.last.to_s)
      new(**fields.transform_keys(&:to_sym), mtime: File.mtime(fields.fetch("exe")).to_i)
    rescue JSON::ParserError, KeyError, SystemCallError
      nil
    end

    # @return [Boolean] whether it is still the Ruby that was looked at
    def same?
      File.executable?(exe) && File.mtime(exe).to_i == mtime
    end

    # @return [String, nil] what keeps Heddle from using it
    def unfit
      return "is older than #{Tools::OLDEST_RUBY}" if Tools.newer?(Tools::OLDEST_RUBY, version)

      "lacks its header files (on Debian: apt-get install ruby-dev)" unless File.exist?(header)
    end

    # @return [Boolean] whether the parts that need a library were built
    def whole?
      !Tools::Command.output(exe, "-e", 'require "openssl"; require "psych"; require "zlib"').nil?
    end

    # Names the places where we keep what belongs to this Ruby alone.
    def key
      "#{version}-#{Digest::SHA256.hexdigest("#{exe} #{abi} #{platform}")[0, 8]}"
    end

    def series
      version[/\A\d+\.\d+/]
    end

    def to_s
      "Ruby #{version}#{" with YJIT" if yjit} (#{exe})"
    end
  end

  # Printed by the Ruby in question. The last line counts, should a wrapper say something first.
  RUBY_PROBE = <<~RUBY
    require "rbconfig"
    require "json"
    config = RbConfig::CONFIG
    yjit = defined?(RubyVM::YJIT) && RubyVM::YJIT.respond_to?(:enabled?) && RubyVM::YJIT.enabled?
    puts JSON.generate(exe: RbConfig.ruby, version: RUBY_VERSION, abi: config["ruby_version"], platform: RUBY_PLATFORM,
                       yjit: yjit ? true : false, compiler: config["CC"],
                       header: File.join(config["rubyhdrdir"], "ruby.h"))
  RUBY
end
