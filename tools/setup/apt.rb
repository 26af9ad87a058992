# frozen_string_literal: true

require_relative "../command"
require_relative "services"

module Tools
  # Debian's packages on this machine.
  class Apt
    # Seconds to wait for another apt.
    LOCK_TIMEOUT = 600

    def self.here?
      !Tools.which("apt-get").nil? && !Tools.which("dpkg-query").nil?
    end

    # @return [Array<String>] those of the packages that are not installed
    def self.missing(packages)
      return [] if packages.empty? || !here?

      text = Command.output("sh", "-c", 'dpkg-query -W -f "\${Package} \${db:Status-Status}\n" "$@" || :', "sh",
                            *packages)
      packages - text.to_s.scan(/^(\S+) installed$/).flatten
    end

    # The packages that were added by us, for --uninstall.
    def self.record
      File.join(Tools.cache, "apt-packages")
    end

    def initialize(console)
      @console = console
      @log = File.join(Tools.cache, "log", "apt.log")
    end

    # Installs what is missing. Starts and enables no service.
    def install(packages)
      missing = self.class.missing(packages)
      return if missing.empty?

      unless Tools.root_user?
        raise Problem.new("packages are missing, and only root can install them",
                          remedies: self.class.remedies(missing))
      end

      @console.step("installing #{missing.join(" ")}", takes: "up to 1 minute") do |show|
        install_quietly(missing, show)
      end
    end

    # One line for each missing package.
    def self.remedies(packages)
      packages.map { |name| "missing: #{name}: as root, apt-get install #{name}" }
    end

    private

    def install_quietly(missing, show)
      FileUtils.rm_f(@log)
      finish_interrupted(show)
      before = installed
      # A third party's broken source must not stop us: what matters is whether the install works.
      begin
        apt("update", show)
      rescue Problem
        nil
      end
      Services.kept_off(@log) { apt("install", show, *missing) }
    rescue Problem => e
      raise Problem.new("packages could not be installed (no network?): #{e.message}",
                        remedies: self.class.remedies(missing), log: @log)
    ensure
      note(installed - before) if before
    end

    # A dpkg that was killed half-way refuses to go on until this is done.
    def finish_interrupted(show)
      return if Dir.empty?("/var/lib/dpkg/updates")

      Command.run("dpkg", "--configure", "-a", log: @log, env: environment, on_line: show, outlive: true)
    end

    def apt(verb, show, *packages)
      Command.run("apt-get", "-q", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=#{LOCK_TIMEOUT}",
                  "-o", "Acquire::Retries=3", verb, *packages,
                  log: @log, env: environment, on_line: show, outlive: true, failure: "apt-get #{verb} failed")
    end

    def environment
      { "DEBIAN_FRONTEND" => "noninteractive", "NEEDRESTART_MODE" => "l", "LC_ALL" => "C.UTF-8" }
    end

    def installed
      Command.output("dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n").to_s
        .scan(/^(\S+) installed$/).flatten
    end

    def note(added)
      return if added.empty?

      known = File.exist?(self.class.record) ? File.readlines(self.class.record, chomp: true) : []
      Tools.write_whole(self.class.record, "#{(known | added).sort.join("\n")}\n")
    end
  end
end
