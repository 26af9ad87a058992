# frozen_string_literal: true

require_relative "../command"

module Tools
  # Starts processes of the test run that are no forks: the C tests, a checker, test files that load another build of
  # the extension.
  class TestProgram
    # @param command [Array<String>] what all of them begin with
    def initialize(env, command = [])
      @env = env
      @command = command
    end

    # @param arguments [Array<String>] the rest of the command
    # @param output [String] a path, for what it says
    # @return [Integer] its id
    def start(arguments, output)
      command = Command.tied(@command + arguments, false)
      Process.spawn(@env, *command, in: File::NULL, out: output, err: %i[child out], pgroup: true, chdir: ROOT)
    end

    # @return [Process::Status, nil] nil when it has not ended after this number of seconds
    def wait(pid, limit)
      waiter = Process.detach(pid)
      waiter.join(limit)
      waiter.value unless waiter.alive?
    end
  end
end
