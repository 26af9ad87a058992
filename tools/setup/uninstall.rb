# frozen_string_literal: true

require_relative "apt"
require_relative "../console"
require_relative "../lock"

module Tools
  # Removes what bin/setup and bin/build made, and says what it cannot remove.
  class Uninstall
    # In the cache: nothing else there is ours.
    CACHED = %w[rubies gems src work log].freeze
    # In the repository, all of it ignored by git.
    BUILT = %w[tmp/state tmp/build tmp/build.lock tmp/test build lib/heddle/*/heddle_native.so].freeze

    def initialize(console: Console.new)
      @console = console
    end

    def run
      unless File.directory?(Tools.cache)
        remove(made)
        return
      end
      Lock.hold(File.join(Tools.cache, "lock"), console: @console) do
        tell_packages
        remove(made)
      end
    end

    private

    def made
      cached = CACHED.map { |name| File.join(Tools.cache, name) }
      cached << Apt.record << File.join(Tools.cache, "lock")
      built = BUILT.flat_map { |pattern| Dir.glob(File.join(ROOT, pattern)) }
      (cached + built).select { |path| File.exist?(path) }
    end

    def remove(paths)
      @console.say("nothing to remove") if paths.empty?
      paths.each do |path|
        @console.say("removing #{path}")
        FileUtils.rm_rf(path)
      end
      # Only folders that are empty now.
      emptied = paths.map { |path| File.dirname(path) }.uniq - [ROOT]
      emptied.each { |folder| Dir.rmdir(folder) if File.directory?(folder) && Dir.empty?(folder) }
    end

    # Other software may need them by now, so this is the user's decision.
    def tell_packages
      return unless File.exist?(Apt.record)

      names = File.readlines(Apt.record, chomp: true)
      @console.say("Debian packages that bin/setup added; to remove them, as root:")
      @console.say("  apt-get purge #{names.join(" ")}")
    end
  end
end
