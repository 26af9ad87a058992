# frozen_string_literal: true

module Heddle
  # One call of Heddle.command.
  #
  # A cancel or a timeout is raised in the block of a scope, which cancels the tasks that feed and read. Then the group
  # of the program is ended. The group exists, and its number cannot be another one's, as long as the program has not
  # been waited for. Descendants that outlive it keep the group. So both are signalled before and after that wait.
  class CommandCall
    # Seconds between two looks whether the group still has processes.
    LOOK = 0.02
    # What decides where input, output and signals go.
    RESERVED = %i[in out err pgroup new_pgroup].freeze
    private_constant :LOOK, :RESERVED

    # @raise [ArgumentError]
    def self.check(command, input, options)
      check_words(command)
      unless input.nil? || input.is_a?(String) || input.respond_to?(:readpartial) || input.respond_to?(:each)
        Check.refuse("input: must be a String, an IO, an Enumerable or nil, not #{Check.shown(input)}")
      end
      wrong = RESERVED & options.keys
      Check.refuse("#{wrong.first}: is for Heddle.command itself") if wrong.any?
    end

    # An environment, if any, then the program, also as a pair with the name that it sees, and its arguments.
    private_class_method def self.check_words(command)
      environment = Hash.try_convert(command.first)
      program, *arguments = environment ? command.drop(1) : command
      Check.refuse("command: name a program") if program.nil?
      check_strings("must be Strings", [*(program.is_a?(Array) ? program : [program]), *arguments])
      check_strings("its environment must be Strings", [*environment&.keys, *environment&.values&.compact])
    end

    private_class_method def self.check_strings(rule, words)
      wrong = words.reject { |word| String.try_convert(word) }
      Check.refuse("command: #{rule}, unlike #{Check.shown(wrong.first)}") unless wrong.empty?
    end

    # @param grace [Numeric] seconds
    # @param block [#call, nil]
    def initialize(input, max_output, grace, block)
      @input = input
      @max_output = max_output
      @grace = grace
      @block = block
    end

    # @return [CommandResult]
    def run(command, options, timeout)
      Heddle.scope(deadline: timeout) do |scope|
        start(command, options)
        scope.spawn(background: true, name: "input of a command") { feed } if @input
        err = scope.spawn(name: "errors of a command") { read(@err) }
        out = @block ? pass_lines : read(@out)
        CommandResult.new(out:, err: err.value, status: wait)
      ensure
        end_group unless @pid.nil? || @status
      end
    ensure
      [@out, @err, @to].each { |pipe| pipe&.close }
    end

    private

    def start(command, options)
      pipes = []
      (@input ? 3 : 2).times { pipes << IO.pipe }
      (@out, out), (@err, err), (input, @to) = pipes
      @pid = Process.spawn(*command, in: input || File::NULL, out:, err:, pgroup: true, **options)
      [out, err, input].compact.each(&:close)
    rescue Exception # rubocop:disable Lint/RescueException -- the descriptors are nobody else's
      pipes.flatten.each(&:close) unless @pid
      raise
    end

    # A program need not read its input.
    def feed
      case @input
      when String then @to.write(@input)
      when ->(input) { input.respond_to?(:readpartial) } then IO.copy_stream(@input, @to)
      else @input.each { |part| @to.write(part) }
      end
    rescue Errno::EPIPE
      nil
    ensure
      @to.close
    end

    def read(pipe)
      return pipe.read unless @max_output

      text = pipe.read(@max_output + 1) || +""
      check_size(text.bytesize)
      text.force_encoding(Encoding.default_external)
    end

    def check_size(size)
      return unless @max_output && size > @max_output

      raise OutputTooLong, "a command has written more than #{@max_output} bytes"
    end

    def pass_lines
      size = 0
      while (line = @out.gets("\n", *(@max_output && [@max_output - size + 1])))
        check_size(size += line.bytesize)
        @block.call(line)
      end
      ""
    end

    def wait
      _, @status = Process.wait2(@pid)
      @status
    end

    # Ends the group if the call has ended before the program. A further cancel, which comes when the scope's own grace
    # period is over, kills it at once.
    def end_group
      signal(:TERM)
      wait_for_group
    ensure
      signal(:KILL)
      wait unless @status
    end

    def wait_for_group
      deadline = Clock.now + @grace
      Heddle.move_on_after(@grace) { wait }
      sleep(LOOK) while @status && signal(0) && lives? && Clock.now < deadline
    end

    # Has the group a process that has not ended? In a container without an init process nobody waits for the zombies of
    # the group, and they could be signalled for ever. Where the system does not list its processes, the signal decides.
    def lives?
      return true unless File.exist?("/proc/self/stat")

      Dir.glob("/proc/[0-9]*/stat").any? do |file|
        state, _, group = File.read(file)[/.*\) (.*)/m, 1].split(" ", 4)
        state != "Z" && Integer(group) == @pid
      rescue SystemCallError # it has ended meanwhile
        false
      end
    end

    # @return [Boolean] whether the group has a process
    def signal(name)
      Process.kill(name, -@pid)
      true
    rescue Errno::ESRCH, Errno::EPERM # (EPERM: only a process that has ended or changed its user)
      false
    end
  end
  private_constant :CommandCall
end
