# frozen_string_literal: true

require_relative "crew"
require_relative "serving_process"
require_relative "signals"
require_relative "successor"
require_relative "worker"
require_relative "worker_main"

module Heddle
  class Server
    # Keeps the workers of a server alive. It serves nothing itself, and runs no scheduler.
    #
    # Each turn of its loop compares the workers that exist with the workers that should exist: one for each number, and
    # none that is older than the last HUP. The loop never waits for one worker: while one loads the application, others
    # may start, end and leave, and signals are heard. To replace a worker, the supervisor starts its successor. Only
    # when the successor serves, the old worker leaves. If the successor does not start, the old worker stays.
    #
    # USR2 replaces this program, in the same process. The workers are handed over to the next program, which then
    # replaces them as for HUP.
    #
    # @private
    class Supervisor # rubocop:disable Metrics/ClassLength -- one loop, whose steps share its state
      # A worker that has lived for fewer seconds than SHORT_LIFE is replaced after a pause. The pause doubles each
      # time, up to LONGEST_PAUSE seconds.
      SHORT_LIFE = 1
      LONGEST_PAUSE = 30
      # Seconds that a worker has beyond the time of its requests, before it is killed.
      EXTRA = 5
      # Seconds between two checks of the age and the memory of the workers.
      LOOK = 5
      # If a turn of the loop is late by this number of seconds, the whole machine has stood still, and the workers with
      # it.
      LATE = 2
      STOPS = ServingProcess::STOPS
      private_constant :SHORT_LIFE, :LONGEST_PAUSE, :EXTRA, :LOOK, :LATE, :STOPS

      # @param settings [Settings]
      # @param sockets [Sockets]
      # @param signals [Signals]
      # @param folder [String, nil] where the workers meet: see {Control}
      def initialize(settings, sockets, signals, folder)
        @settings = settings
        @sockets = sockets
        @signals = signals
        @folder = folder
        @crew = Crew.new
        @workers = @crew.taken_over.to_h { |worker| [worker.pid, worker] }
        @served = @told_ready = @workers.any?
        @count = settings.workers
        @pauses = {} # number => seconds after which it is started anew
        @due = {} # number => when it is started anew
        @to_replace = [] # workers, one after another
        @failed = [] # numbers whose worker has not started
      end

      # @yield before it stops while the application is being loaded: then the program ends and this does not return
      # @return [Symbol] :stop, :failed if no worker can start, or :exec if another program takes the place of this one
      def run(&)
        preload(&) if @settings.preload && !@settings.app
        replace_all
        turn(@signals.pop(timeout: 0)) until @outcome
        @outcome
      end

      # @return [Array(Hash{String => String}, Hash{Integer => IO})] environment and descriptors for the program that
      #   takes the place of this one: the workers serve until that program has its own
      def handed_over = @crew.handed_over(@workers.values.select(&:ready?))

      # Goes on with this program, because the other one could not be started.
      def go_on
        @outcome = nil
        self
      end

      private

      def now = Clock.now
      def say(text) = @settings.say(text)

      # -- a turn ----------------------------------------------------------------------------------------------------

      def turn(event)
        follow(event) if event
        @workers.each_value { |worker| hear(worker) }
        reap
        return if @outcome

        end_overdue
        return stopped if @stopping

        fill
        recycle
        advance
        fail_to_start if nothing_starts?
        wait unless @outcome
      end

      def wait
        seconds = next_limit && [next_limit - now, 0].max
        woken = now
        IO.select([@signals, *@workers.each_value.select(&:heard?)], nil, nil, seconds)
        late = seconds && now > woken + seconds + LATE
        @workers.each_value(&:excuse) if late
      end

      def next_limit
        limits = @workers.each_value.map { |worker| worker.limit(@settings) }
        limits += [*@due.values, @trial_ends, @looked && (@looked + LOOK)] unless @stopping
        limits.compact.min
      end

      def follow(event)
        return stop(event) if STOPS.include?(event)
        return if @stopping

        case event
        when :restart then restart
        when :exec then try_program
        when :more then change_count(1)
        when :fewer then change_count(-1)
        end
      end

      def hear(worker)
        return unless worker.hear

        @served = true
        say("worker #{worker.number} (process #{worker.pid}) is ready")
        return if @told_ready

        @told_ready = true
        @settings.notify("READY=1")
        @settings.call_hooks(:on_booted)
      end

      def reap
        while (pid = Process.wait(-1, Process::WNOHANG))
          next tried($?) if pid == @trial
          next unless (worker = @workers.delete(pid))

          worker.close
          ended(worker, "has ended (#{$?.to_s.sub(/\Apid \d+ /, "")})") if worker.stays?
        end
      rescue Errno::ECHILD
        nil
      end

      # Notes that a worker has ended without a request to leave, and lets another worker take its place.
      #
      # @param worker [Worker] a worker that was not asked to leave
      # @param how [String]
      def ended(worker, how)
        @failed |= [worker.number] unless worker.ready?
        return give_up_replacing(worker, how) if worker.equal?(@successor)

        say("worker #{worker.number} (process #{worker.pid}) #{how}; another one takes its place")
        pause(worker)
      end

      def end_overdue
        @workers.each_value do |worker|
          next if worker.limit(@settings) > now

          stayed = worker.stays?
          how = lack(worker)
          worker.leave(:KILL, EXTRA)
          stayed ? ended(worker, "#{how}, and is killed") : say("worker process #{worker.pid} #{how}, and is killed")
        end
        Process.kill(:KILL, @trial) if @trial && @trial_ends <= now
      end

      def lack(worker)
        if worker.leaves then "has not ended in time"
        elsif worker.ready? then "has not turned its loop for #{@settings.worker_timeout} s"
        else "has not loaded the application within #{@settings.boot_timeout} s"
        end
      end

      # -- a worker for each number ----------------------------------------------------------------------------------

      def fill
        staying = @workers.each_value.select(&:stays?)
        staying.each { |worker| leave(worker) if worker.number >= @count }
        vacant = Array.new(@count, &:itself) - staying.map(&:number)
        @due.keep_if { |number, _| vacant.include?(number) }
        vacant.each { |number| start(number) if @due.fetch(number, 0) <= now }
      end

      def pause(worker)
        return @pauses.delete(worker.number) if worker.ready? && now - worker.since >= SHORT_LIFE

        @pauses[worker.number] = [(@pauses[worker.number] || (SHORT_LIFE / 2.0)) * 2, LONGEST_PAUSE].min
        @due[worker.number] = now + @pauses[worker.number]
      end

      # @return [Worker, nil]
      def start(number)
        @due.delete(number)
        @settings.call_hooks(:before_fork, number)
        reader, writer = IO.pipe
        pid = fork { be_worker(number, writer) }
        writer.close
        @workers[pid] = Worker.new(number, pid, reader)
      rescue StandardError => e
        [reader, writer].each { |io| io&.close }
        say("worker #{number} cannot be started: #{e.full_message(highlight: false)}")
        @due[number] = now + LONGEST_PAUSE
        nil
      end

      # Runs a worker, in the new process. The worker closes everything of the supervisor that it does not need.
      def be_worker(number, channel)
        WorkerMain.take_signals
        @signals.leave
        [@crew, *@workers.values].each(&:close)
        WorkerMain.new(@settings, number, channel, @crew.lifeline).run(@sockets, @folder)
      end

      def change_count(difference)
        @count = [@count + difference, 1].max
        say("#{@count} worker#{"s" if @count > 1} from now on")
      end

      # Returns whether no worker can start: each has failed once, and none serves. After a stop this is false, because
      # the signal may have reached the workers, too, and ended some of them.
      def nothing_starts?
        !@served && @failed.size >= @count && !@signals.come?(STOPS)
      end

      def fail_to_start
        say("no worker can start")
        @workers.each_value { |worker| worker.tell(:KILL) }
        @outcome = :failed
      end

      # -- replacing -------------------------------------------------------------------------------------------------

      def restart
        @settings.enter_directory
        @settings.reopen_logs
        @sockets.reload { |error| say("a certificate stays as it is: #{error.message}") }
        @workers.each_value { |worker| worker.tell(:HUP) if worker.ready? }
        return try_program if @settings.preload

        @settings.notify_reloading
        replace_all
      rescue SystemCallError => e
        say("the workers stay: #{e.message}")
      end

      # Begins to replace all workers. A worker that is still starting may have begun with the old files, so it is
      # started again.
      def replace_all
        staying, starting = @workers.each_value.select(&:stays?).partition(&:ready?)
        starting.each { |worker| worker.leave(:KILL, EXTRA) }
        @due.clear
        @successor = nil
        @to_replace = staying.sort_by(&:number)
      end

      def advance
        replaced if @successor&.ready?
        @successor = nil if @successor && !@successor.stays?
        return if @successor || @to_replace.empty?

        @to_replace.shift until @to_replace.empty? || still_there?(@to_replace.first)
        return end_of_reload if @to_replace.empty?

        @successor = start(@to_replace.first.number) || give_up_replacing(@to_replace.first, "there is none")
      end

      def replaced
        @successor = nil
        old = @to_replace.shift
        leave(old) if still_there?(old)
        end_of_reload if @to_replace.empty?
      end

      def still_there?(worker) = worker.stays? && @workers.key?(worker.pid)

      # @return [nil]
      def give_up_replacing(worker, how)
        @successor = nil
        @to_replace.clear
        @looked &&= now + LONGEST_PAUSE
        say("worker #{worker.number} stays: the new one #{how}")
        end_of_reload
      end

      def end_of_reload
        @settings.notify("READY=1") if @served
        nil
      end

      # Replaces workers that have reached a limit of age, memory or requests, one after another, if the settings have
      # such a limit.
      def recycle
        return unless @settings.recycle? && (@looked.nil? || now >= @looked + LOOK)

        @looked = now
        return unless @to_replace.empty?

        candidates = @workers.each_value.select { |worker| worker.ready? && worker.stays? }
        worker = candidates.find { |one| one.enough(@settings) } or return
        say("worker #{worker.number} (process #{worker.pid}) has had #{worker.enough(@settings)}; " \
            "another one takes its place")
        @to_replace = [worker]
      end

      # -- the end, and another program ------------------------------------------------------------------------------

      def leave(worker, signal = :QUIT)
        return worker.leave(:KILL, EXTRA) unless worker.ready?

        worker.leave(signal, @settings.drain + EXTRA + (signal == :TERM ? @settings.delay : 0))
      end

      # Stops the workers. At the first stop, workers that are leaving already go on with that. At the second stop
      # nobody waits for requests any longer.
      #
      # @param event [Symbol]
      def stop(event)
        again = @stopping
        @stopping = true
        @settings.notify("STOPPING=1") unless again
        ending = again ? @workers.values : @workers.values.select(&:stays?)
        ending.each { |worker| leave(worker, event == :stop && !again ? :TERM : :QUIT) }
        @sockets.abandon
        end_trial
      end

      def stopped
        @workers.empty? ? @outcome = :stop : wait
      end

      def try_program
        end_trial
        say("another program takes the place of this one, if it can")
        @trial = @settings.successor.try
        @trial_ends = now + @settings.boot_timeout
      rescue SystemCallError => e
        say("this program goes on: #{e.message}")
      end

      def tried(status)
        @trial = @trial_ends = nil
        return if @stopping
        return say("this program goes on: the other one cannot start (#{status})") unless status.success?

        @workers.each_value { |worker| worker.leave(:KILL, EXTRA) if worker.starting? }
        @outcome = :exec
      end

      def end_trial
        Process.kill(:KILL, @trial) if @trial
        @trial = @trial_ends = nil
      rescue Errno::ESRCH
        nil
      end

      # Loads the application before the workers start. A stop ends the program, even if the application takes long to
      # load. If workers serve already and the application cannot be loaded, each new worker reports the error, too.
      def preload(&finish)
        @signals.during(STOPS, -> { stop_now(&finish) }) { @settings.application }
        @signals.take_back # the application may have set its own handlers
      rescue ScriptError, StandardError => e
        raise unless @served

        say("the application cannot be loaded: #{e.full_message(highlight: false)}")
      end

      def stop_now
        turn(@signals.pop(timeout: 0)) until @outcome
        yield
        exit!(0)
      end
    end
  end
end
