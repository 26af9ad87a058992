# frozen_string_literal: true

module Heddle
  # Methods that extend an error when it leaves its task. The error stays the same object, but its backtrace goes on
  # where the backtrace of the task ends: with the line that has spawned the task, and with the lines that have opened
  # its scope. The lines of Heddle itself are left out (with `ruby -d` they stay). The error also lists other errors
  # that have been raised meanwhile.
  #
  # The backtrace is not set anew, so that backtrace_locations, which error_highlight needs, stays as it was.
  module TaskFailure
    OWN = Ractor.make_shareable(File.dirname(__dir__).then { |library| ["#{library}/", "#{library}.rb:"] })
    # The hooks in C, which Ruby shows with the line of the program that waits. Ruby 3.3 leaves out the class.
    HOOKS = /in ['`](?:Heddle::Scheduler#\w+|kernel_sleep|io_\w+|process_wait|address_resolve|timeout_after)'\z/
    # The number of other errors that the message shows.
    SHOWN = 10
    STACK_HINT = ": `heddle run --deep-tasks` or RUBY_FIBER_VM_STACK_SIZE gives it more."
    private_constant :OWN, :HOOKS, :SHOWN, :STACK_HINT

    class << self
      # The error ends a task: the line that has spawned it follows.
      # @private
      # @param place [String] path and line
      def end_task(error, name, place)
        line = "#{place}:in 'Heddle.spawn#{" (task #{name.inspect})" if name}'"
        explain_stack(error) if error.instance_of?(SystemStackError)
        extend_backtrace(error, line.start_with?(*OWN) ? [] : [line])
      rescue StandardError
        nil # the methods of an exception's class may fail
      end

      # The error ends a scope: the lines that have opened the scope follow, unless its own fiber has raised the error.
      # @private
      # @param frames [Array<String>]
      # @param own [Boolean] has the owner of the scope raised it?
      def end_scope(error, frames, own: false)
        lines = clean(frames)
        own &&= !error.is_a?(self) || !error.from_task? || clean(error.backtrace).last(lines.size) == lines
        extend_backtrace(error, own ? [] : lines)
      rescue StandardError
        nil
      end

      # @private
      # @param others [Array<Exception>] the other errors
      # @return [Array<Exception>] the errors that cannot be attached
      def attach(error, others)
        others = apart(others).reject { |other| other.equal?(error) || other.equal?(cause_of(error)) }
        return others if others.empty? || error.frozen?

        error.extend(self)
        error.suppress(others)
        []
      end

      # Attaches the earlier error to the error that is raised in its place.
      # @private
      def pass_on(before, error)
        ErrorReport.print_all(attach(error, before.suppressed)) if before.is_a?(self)
      end

      # Returns each error once, by its identity: a class may have comparison methods of its own.
      # @private
      def apart(errors) = errors.uniq(&:__id__)

      # Raises it with its own cause, not with the error that its caller is rescuing.
      # @private
      def raise_again(error)
        error.frozen? ? raise(error) : raise(error, cause: cause_of(error))
      end

      # Raises it at the end of a scope or a run: a throw that was not caught in the task may be caught here.
      # @private
      def leave(error)
        throw_again(error) if error.is_a?(UncaughtThrowError)
        raise_again(error)
      end

      # Raises the first of the other errors that the error lists, with the rest.
      # @private
      def raise_suppressed(error) = raise_first(error.is_a?(self) ? error.suppressed : [])

      # Finds the line of the program that calls Heddle here.
      # @private
      # @return [String, nil] path and line
      def place_of_caller = clean(caller).first&.[](/\A.*?:\d+/)

      # @private
      def clean(frames)
        $DEBUG ? frames : frames.reject { |frame| frame.start_with?(*OWN) || frame.match?(HOOKS) }
      end

      # Finds the cause by Ruby's own method: a class may have a different method of this name.
      # @private
      def cause_of(error) = Exception.instance_method(:cause).bind_call(error)

      private

      # Throws again. Another error that was raised meanwhile takes its place, as in an ensure block.
      def throw_again(error)
        caught = true
        throw(error.tag, error.value)
      rescue UncaughtThrowError
        caught = false # not caught here either
      ensure
        meanwhile = caught && error.is_a?(self) ? error.suppressed : []
        raise_first(meanwhile.reject { |other| goes_there?(other, error.tag) })
      end

      def raise_first(errors)
        first, *others = errors
        return unless first

        ErrorReport.print_all(attach(first, others))
        raise_again(first)
      end

      # Another task may have thrown to the same place. The first throw arrives there, as if the second task had been
      # cancelled before.
      def goes_there?(error, tag) = error.is_a?(UncaughtThrowError) && error.tag.equal?(tag)

      def extend_backtrace(error, lines)
        return if error.frozen? || !error.backtrace
        return lengthen(error, lines) if error.instance_of?(SystemStackError)

        error.extend(self)
        error.go_on(lines)
      end

      # Explains a lack of stack. Ruby accepts a new message only through initialize, which forgets the backtrace.
      def explain_stack(error)
        return if error.frozen? || error.message.end_with?(STACK_HINT)

        frames = error.backtrace
        size = RubyVM::DEFAULT_PARAMS[:fiber_vm_stack_size] / 1024
        error.__send__(:initialize, "#{error.message}\nA task has #{size} KiB for its calls#{STACK_HINT}")
        error.set_backtrace(frames)
      end

      # Adds the lines by set_backtrace. When Ruby prints such an error, it leaves out most of the thousands of lines,
      # but not for an object that was extended.
      def lengthen(error, lines)
        frames = clean(error.backtrace)
        error.set_backtrace(frames + (lines - frames))
      end
    end

    # @return [Array<Exception>] the errors that were raised because of this error, or at the same time: errors of other
    #   tasks of the scope, and of their ensure blocks; and those of former attempts of Heddle.retry
    def suppressed = @heddle_suppressed || []

    # Returns the backtrace of the error without the lines of Heddle, followed by the lines that have led to the task.
    #
    # @return [Array<String>, nil]
    def backtrace
      return @heddle_backtrace if @heddle_backtrace

      own = super or return
      program = TaskFailure.clean(own)
      program += @heddle_lines || []
      @heddle_backtrace = program.empty? ? own : program
    end

    # Sets the backtrace, as of any exception.
    #
    # @param frames [Array<String>, String, nil]
    # @return [Array<String>, nil]
    def set_backtrace(frames) # rubocop:disable Naming/AccessorMethodName -- Ruby's name
      @heddle_backtrace = @heddle_lines = nil
      super
    end

    # Returns the message and the other errors: the first few, and the number of further ones.
    #
    # @param highlight [Boolean] with escape sequences for a terminal?
    # @return [String]
    def detailed_message(highlight: false, **)
      others = suppressed.first(SHOWN).map do |error|
        place = error.backtrace&.first
        "\n  also failed: #{Wording.of(error, :message)} (#{error.class})#{" at #{place}" if place}"
      end
      others << "\n  and #{suppressed.size - SHOWN} more (see suppressed)" if suppressed.size > SHOWN
      own = super
      others.any? ? [Wording.in_utf8(own), *others].join : own
    end

    # @private
    def go_on(lines)
      @heddle_lines = (@heddle_lines || []) + (lines - (@heddle_lines || [])) unless lines.empty?
      @heddle_backtrace = nil
    end

    # @private Has it ended a task?
    def from_task? = !@heddle_lines.nil?

    # @private
    def suppress(others)
      @heddle_suppressed = TaskFailure.apart(suppressed + others)
    end
  end
end
