# frozen_string_literal: true

module Tools
  # What the tools make of signals, and hand on to the programs that they start.
  module Signals
    ENDING = %w[TERM HUP].freeze

    module_function

    # An ending signal is an exception here. What whoever started us ignores (a shell SIGINT for `bin/test &`, nohup
    # SIGHUP) has no effect here either, but a program that we start takes it as usual: it does not inherit handlers.
    def set_up
      ignored = self.ignored
      ENDING.each { |name| Signal.trap(name) { raise SignalException, name } }
      ignored.each { |name| Signal.trap(name) { nil } }
    end

    # @return [Array<String>] names; none where there is no /proc
    def ignored
      mask = File.read("/proc/self/status")[/^SigIgn:\s*(\h+)/, 1].to_i(16)
      %w[HUP INT QUIT PIPE TERM USR1 USR2 ALRM].select { |name| mask[Signal.list.fetch(name) - 1] == 1 }
    rescue SystemCallError
      []
    end
  end
end
