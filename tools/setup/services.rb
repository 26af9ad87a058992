# frozen_string_literal: true

require_relative "../command"

module Tools
  # Debian's server packages start and enable their server when they are
  # installed. The tests start what they need themselves.
  module Services
    POLICY = "/usr/sbin/policy-rc.d"
    MARK = "# made by Heddle's bin/setup for the time of an installation"

    module_function

    # Runs the block so that no package installed in it starts a service, and
    # none that it enables stays enabled.
    def kept_off(log)
      before = enabled
      made = forbid_start
      yield
    ensure
      File.delete(POLICY) if made
      (enabled - before).each { |unit| disable(unit, log) } if before
    end

    # The file asks invoke-rc.d and systemd's helper not to start anything.
    # One that is already there, say in a container, decides by itself.
    def forbid_start
      return false if File.exist?(POLICY) && !File.read(POLICY).include?(MARK)

      File.write(POLICY, "#!/bin/sh\n#{MARK}\nexit 101\n")
      File.chmod(0o755, POLICY)
      true
    end

    # @return [Array<String>] names of the services that start at boot
    def enabled
      units = Dir.glob("/etc/systemd/system/*.{wants,requires}/*.{service,socket,timer,path}")
      scripts = Dir.glob("/etc/rc[2-5].d/S*").map { |path| "#{File.basename(path)[3..]}.service" }
      (units.map { |path| File.basename(path) } + scripts).uniq
    end

    def disable(unit, log)
      name = unit.delete_suffix(".service")
      Command.run("systemctl", "disable", unit, log: log) if Tools.which("systemctl")
      Command.run("update-rc.d", name, "disable", log: log) if File.exist?("/etc/init.d/#{name}")
    rescue Problem
      # It is named rather than left alone in silence.
      warn "heddle: could not disable #{unit}: systemctl disable #{unit}"
    end
  end
end
