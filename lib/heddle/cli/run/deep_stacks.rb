# frozen_string_literal: true

module Heddle
  module CLI
    # Decides how deep calls may go in a task. Ruby gives a fiber an eighth of the room that the main program has for
    # its calls, and reads the sizes from the environment when it starts. So Ruby is started once more, in the same
    # process, with room for as many calls in a fiber as in the main program: for `heddle run --deep-tasks`, and for
    # commands that ask for it (CLI.make_room).
    #
    # @private
    module DeepStacks
      # In bytes: the room of a thread for Ruby's calls, and enough of the machine's stack for calls that go through C,
      # also without YJIT.
      SIZES = { "RUBY_FIBER_VM_STACK_SIZE" => 1 << 20, "RUBY_FIBER_MACHINE_STACK_SIZE" => 7 << 19 }.freeze
      # The environment variable that says that Ruby has been started once more.
      MARK = "HEDDLE_RUN_STACKS"
      # Ruby has a handler of its own for each of these. It notes the signal, and would forget it in the exec.
      NOTED = %w[HUP INT QUIT ALRM TERM USR1 USR2].freeze
      private_constant :MARK, :NOTED

      # @return [Hash{String => String}] for a program that takes the place of this one: it has enough room from the
      #   start
      def self.environment = @made ? { **SIZES.transform_values(&:to_s), MARK => "1" } : {}

      # Starts Ruby once more, unless that has been done or the environment sets a size. Programs that the script starts
      # do not inherit the sizes.
      #
      # @param args [Array<String>] the arguments after the name of the program
      # @return [void]
      def self.make_room(args)
        return if ENV.keys.intersect?(SIZES.keys) && !ENV.key?(MARK)
        return @made = [MARK, *SIZES.keys].each { |name| ENV.delete(name) } if ENV.key?(MARK)
        return unless Process.getrlimit(:AS).first == Process::RLIM_INFINITY # a task takes 4.5 MB of address space

        command = own_command(args) or return
        @made = true
        end_by_signals { exec(environment, *command, close_others: false) }
      rescue SystemCallError
        @made = nil # this Ruby goes on with its own stacks
      end

      # Runs the block, in which the kernel itself acts on these signals.
      def self.end_by_signals
        before = NOTED.to_h { |name| [name, trap(name, "SYSTEM_DEFAULT")] }
        before.each { |name, handler| trap(name, handler) if handler == "IGNORE" } # as nohup wants it
        yield
      ensure
        before&.each { |name, handler| trap(name, handler) }
      end
      private_class_method :end_by_signals

      # Returns the command that has started this process, or nil if another program than `heddle` calls the class.
      def self.own_command(args)
        own = args.map { |arg| arg.dup.force_encoding("UTF-8") }
        words = words_of_command
        return [[File.readlink("/proc/self/exe"), words.first], *words.drop(1)] if words && words.last(own.size) == own

        [RbConfig.ruby, $PROGRAM_NAME, *args] if File.basename($PROGRAM_NAME) == "heddle" # Bundler sets the title
      end
      private_class_method :own_command

      # Returns nil where the system does not say it.
      def self.words_of_command
        File.binread("/proc/self/cmdline").split("\0", -1)[...-1].map { |word| word.force_encoding("UTF-8") }
      rescue Errno::ENOENT
        nil
      end
      private_class_method :words_of_command
    end
  end
end
