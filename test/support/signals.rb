# frozen_string_literal: true

module TestSupport
  # A shell starts what it puts in the background (`bin/test &`) with SIGINT ignored, nohup with SIGHUP. All processes
  # that the tests start inherit that, and tests of signals would wait in vain.
  module Signals
    # The signals that a program may ignore, but for those of Ruby itself.
    NAMES = Signal.list.keys - %w[EXIT KILL STOP SEGV BUS ILL FPE VTALRM CLD IOT POLL]

    # Signals that this process ignores take effect again, as they do in a Ruby that is started from a terminal.
    def self.restore
      ignored.each { |name| Signal.trap(name, "DEFAULT") }
    end

    # @return [Array<String>] none where the system does not say it
    def self.ignored
      return [] unless File.exist?("/proc/self/status")

      mask = File.read("/proc/self/status")[/^SigIgn:\s*(\h+)/, 1].to_i(16)
      NAMES.select { |name| mask[Signal.list.fetch(name) - 1] == 1 }
    end
  end
end

TestSupport::Signals.restore
