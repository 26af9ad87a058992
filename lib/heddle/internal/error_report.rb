# frozen_string_literal: true

module Heddle
  using Internal

  # Reports errors that no caller receives: the error of a plain Fiber.schedule block, or of an isolated task whose
  # value nobody requests. Without a handler of the program (Heddle.on_error) it prints on stderr what Ruby prints for
  # threads. This is not a warning: it also appears where $VERBOSE is nil, and not where Thread.report_on_exception is
  # false.
  module ErrorReport
    module_function

    # @param error [Exception]
    # @param task [Heddle::Task, nil] nil: the running fiber is a plain one, and has ended with it
    # @param what [String, nil] the thing that has failed, if it is not the task
    # @return [void]
    def print(error, task = nil, what = nil) = in_full { print_once(error, task, what) }

    # @param errors [Array<Exception>]
    # @param failed [Array<Heddle::Task>] tasks of which some have failed with these errors
    # @return [void]
    def print_all(errors, failed = [])
      return if errors.empty?

      tasks = failed.each_with_object({}.compare_by_identity) { |task, all| all[task.failure] ||= task }
      in_full { errors.each { |error| print(error, tasks[error]) } }
    end

    # Runs a block that reports errors; its handler may wait, and so may a write to stderr. An exception that arrives
    # meanwhile (a cancel) is raised at the next wait after the block, because at its end it would take the place of
    # an error that is about to be raised. Without a scheduler a mask would delay the handler's own timeouts.
    def in_full(&)
      scheduler = Scheduler.current
      scheduler ? scheduler.hold_back(SHIELDED, &) : yield
    end

    def print_once(error, task, what)
      report(error, task, what)
      handler = Ractor.current[:heddle_on_error]
      return write(error, task, what) unless handler

      begin
        call(handler, error, task, what)
      rescue StandardError => e
        write(error, task, what)
        write(e, nil, "the handler of Heddle.on_error")
      end
    end

    # @param error [Exception] has ended the running fiber, which runs no task; its own cancel is no error
    # @return [void]
    def print_of_fiber(error)
      print(error) unless error.is_a?(Cancelled) && error.meant_for?(nil)
    end

    # @param task [Heddle::Task] is killed, because it has not ended in twice this time
    # @param fiber [Fiber] where it waits
    # @return [void]
    def print_killed(task, grace, fiber)
      place = TaskFailure.clean(fiber.backtrace || []).first
      $stderr.write("heddle: #{task.inspect} is killed: it goes on though its scope has been ending for more than " \
                    "twice the grace period of #{grace} s#{"\n  at #{place}" if place}\n")
    end

    def report(error, task, what)
      reporter = Ractor.current[:heddle_error_reporter]
      call(reporter, error, task, what) if reporter
    rescue StandardError => e
      write(e, nil, "the reporter of errors")
    end

    # The handler may wait, and meanwhile the scope may end.
    def call(handler, error, task, what)
      return task.named(what) { call(handler, error, task, nil) } if task && what

      handler.call(error, task)
    end

    # @param handler [#call, nil] nil: stderr
    # @return [void]
    def use(handler)
      Ractor.current[:heddle_on_error] = handler
    end

    # Adds a reporter for a framework that collects errors as well. The handler of the program stays the same.
    # @param reporter [#call]
    # @return [void]
    def also(reporter)
      Ractor.current[:heddle_error_reporter] = reporter
    end

    def write(error, task, what = nil)
      return unless Thread.report_on_exception && Thread.current.report_on_exception

      what &&= "heddle: #{what} has failed"
      what ||= "#{(task || Fiber.current).inspect} terminated with exception (report_on_exception is true)"
      $stderr.write("#{what}:\n", text(error)) # not joined: their encodings may differ
    end

    # The methods of the exception's class may fail.
    def text(error)
      error.full_message
    rescue StandardError
      place = Exception.instance_method(:backtrace).bind_call(error)&.first
      "#{"#{place}: " if place}#{error.class}\n"
    end
  end
  private_constant :ErrorReport

  class << self
    # Sets the handler for errors that no caller receives: the error of an isolated task whose value nobody has
    # requested, of a plain Fiber.schedule block, and the errors of {Heddle.report}. Without it they are
    # printed on stderr, as Ruby does for threads. An error of the handler itself is printed, too. The handler may wait;
    # a scope ends when it has returned. A cancel that comes meanwhile is raised at the next wait after the handler. The
    # handler is used in the whole process; in a Ractor, for that Ractor.
    #
    # If an application under Heddle::Server has failed, the task has the name of the request, such as "the request GET
    # /orders", until the handler returns.
    #
    # @example
    #   Heddle.on_error { |error, task| Sentry.capture_exception(error, extra: { task: task&.name }) }
    #
    # @param handler [#call, nil] in place of a block; nil without a block: they are printed again
    # @yieldparam error [Exception]
    # @yieldparam task [Heddle::Task, nil] nil: a plain fiber has failed
    # @return [void]
    # @raise [ArgumentError] if the handler cannot be called
    def on_error(handler = nil, &block)
      handler ||= block
      Check.callable("handler", handler)
      ErrorReport.use(handler)
      nil
    end

    # Reports an error that no caller receives, as Heddle reports the errors of tasks: to the handler of
    # {Heddle.on_error}, or else on stderr. For servers and other programs that go on after an error.
    #
    # @example
    #   rescue StandardError => e
    #     Heddle.report(e, "the job #{job.id}")
    #
    # @param error [Exception]
    # @param what [String, nil] what has failed: the name of the current task until the handler returns; nil: the
    #   current task itself
    # @return [void]
    # @raise [ArgumentError] if the error is no Exception
    def report(error, what = nil)
      Check.refuse("error: must be an Exception, not #{Check.shown(error)}") unless error.is_a?(Exception)
      ErrorReport.print(error, current_task, what)
    end
  end
end
