# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require "timeout"
require_relative "child"

module Bench
  # The peers' gems, in a folder of their own for each Ruby: tmp/bench/gems/. A gem that cannot be installed is
  # remembered there in NAME.failed with the reason; delete that file to try again.
  class PeerGems
    INSTALL_LIMIT = 900

    def initialize(install:)
      @install = install
      @dir = File.expand_path("../../tmp/bench/gems/#{RbConfig::CONFIG["ruby_install_name"]}-#{RUBY_VERSION}", __dir__)
    end

    # Where a child finds gems: here first, then where this Ruby has them.
    def env = { "GEM_HOME" => @dir, "GEM_PATH" => [@dir, *Gem.path].uniq.join(File::PATH_SEPARATOR) }

    # Why a peer cannot have its gems on this Ruby, or nil.
    def missing(peer)
      return "not for this Ruby (needs #{peer.ruby})" unless peer.supports_this_ruby?

      peer.gems.lazy.filter_map { |name| missing_gem(name) }.first
    end

    # Why there is no such gem here, after a try to install it; or nil.
    def missing_gem(name)
      return if version(name)

      note = File.join(@dir, "#{name}.failed")
      return "not installable on this Ruby: #{File.read(note)}" if File.exist?(note)
      return "not installed" unless @install

      FileUtils.mkdir_p(@dir)
      reason = install(name)
      File.write(note, reason) if reason
      reason && "not installable on this Ruby: #{reason}"
    end

    # The newest one that is here, or nil.
    def version(name)
      files = [@dir, *Gem.path].flat_map { |dir| Dir.glob("#{name}-[0-9]*.gemspec", base: "#{dir}/specifications") }
      files.map { |file| file[/\A#{name}-(\d[\w.]*?)(-.*)?\.gemspec\z/, 1] }.max_by { |text| Gem::Version.new(text) }
    end

    private

    def install(name)
      warn("installing #{name} for Ruby #{RUBY_VERSION} ...")
      command = [RbConfig.ruby, "-S", "gem", "install", "--no-document", "--install-dir", @dir, name]
      said, status = Timeout.timeout(INSTALL_LIMIT) { Open3.capture2e(Child::CLEAN_ENV, *command, stdin_data: "") }
      File.write(File.join(@dir, "#{name}.log"), said)
      said[/^ERROR: *(.*)/, 1] || "see #{name}.log" unless status.success?
    rescue Timeout::Error
      "the installation took longer than #{INSTALL_LIMIT} s"
    end
  end
end
