# frozen_string_literal: true

require_relative "serving_process"
require_relative "signals"

module Heddle
  class Server
    # Keeps the workers of a server alive. It serves nothing itself, and runs no scheduler.
    #
    # TERM and INT: the workers stop, each after the requests that it has. HUP: they are replaced one by one, by ones
    # that load the application anew. USR2: so is this process, by the program that is installed now. The workers
    # ignore INT, which a terminal sends to all processes, and TERM after the first one: systemd sends it to all, too.
    #
    # @private
    class Supervisor
      # A worker: its process, since when, whether it was told to stop, and whether it has begun to serve in time.
      Worker = Struct.new(:number, :pid, :since, :leaving, :ready)

      # Seconds that a worker may take to load the application.
      BOOT_TIME = 60
      # A worker that has not lived for so many seconds is replaced after as many.
      SHORT_LIFE = 1
      PREDECESSORS = "HEDDLE_SERVE_WORKERS"
      LIFELINE = "HEDDLE_SERVE_LIFELINE"
      SIGNALS = { "TERM" => :stop, "INT" => :stop_at_once, "HUP" => :restart, "USR2" => :exec, "CHLD" => :child }.freeze
      STOPS = ServingProcess::STOPS
      OF_WORKERS = { "TERM" => :stop, "QUIT" => :replace }.freeze
      private_constant :SIGNALS, :STOPS, :OF_WORKERS, :Worker, :BOOT_TIME, :SHORT_LIFE, :PREDECESSORS, :LIFELINE

      # @param settings [Settings]
      # @param sockets [Sockets]
      # @param folder [String, nil] where the workers meet: see {Control}
      def initialize(settings, sockets, folder)
        @settings = settings
        @sockets = sockets
        @folder = folder
        @workers = {} # pid => Worker
        @lifeline, @held = IO.pipe
        @held_for_predecessors = [*ENV.delete(LIFELINE)].map { |fd| IO.for_fd(Integer(fd), "w") }
        @missing = [] # [when, number] of workers that are to be started
      end

      # @return [Symbol] :stop, or :exec when another program is to take the place of this one
      def run
        @events = Signals.new(SIGNALS)
        @settings.application if @settings.preload
        @settings.workers.times { |number| start(number) unless stopped? }
        stop_predecessors
        @settings.notify("READY=1")
        outcome = nil
        outcome = follow(@events.pop(timeout: until_next_start)) until outcome
        outcome
      end

      # @return [Array(Hash{String => String}, Hash{Integer => IO})] environment and descriptors for the program that
      #   takes the place of this one: the workers serve until its own ones are there
      def handed_over
        [{ PREDECESSORS => @workers.each_key.to_a.join(","), LIFELINE => @held.fileno.to_s }, { @held.fileno => @held }]
      end

      private

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      # @return [Symbol, nil] how it ends, if it does
      def follow(event)
        case event
        when :child then reap
        when :restart then restart
        when :exec then return stopped? ? nil : :exec
        when *STOPS then return stop(event)
        end
        start(@missing.shift.last) while !stopped? && @missing.any? && @missing.first.first <= now
        nil
      end

      def until_next_start = @missing.empty? ? nil : [@missing.first.first - now, 0].max

      # (It is told of that where it pops the event: no more workers are started before.)
      def stopped? = @events.come?(STOPS)

      # Returns when it is ready, has ended, or is not waited for any more.
      #
      # @return [Worker]
      def start(number)
        reader, writer = IO.pipe
        pid = fork { be_worker(number, writer) }
        writer.close
        worker = @workers[pid] = Worker.new(number, pid, now, false)
        worker.ready = @events.wait_for(reader, BOOT_TIME, but: STOPS) && reader.read(1)
        say("worker #{number} (process #{pid}) is ready") if worker.ready
        leave(worker, :KILL) if !worker.ready && stopped? # (TERM may come before it knows what that means)
        worker
      ensure
        reader&.close
      end

      def be_worker(number, ready)
        SIGNALS.each { |name, event| trap(name, %i[stop child].include?(event) ? "DEFAULT" : "IGNORE") }
        @events.leave
        [@held, *@held_for_predecessors].each(&:close)
        Process.setproctitle("heddle serve: worker #{number}")
        process = ServingProcess.new(@settings, @sockets.for_worker(number), control: @sockets.control, worker: number,
                                                                             folder: @folder, lifeline: @lifeline,
                                                                             ready: ready)
        @sockets.abandon # the supervisor keeps them
        process.run(OF_WORKERS, once: "TERM")
        exit!(0)
      rescue SignalException # it is to stop before it serves
        exit!(1)
      rescue Exception => e # rubocop:disable Lint/RescueException -- nothing of the parent's is to run at its end
        warn("heddle serve: worker #{number}: #{e.full_message(highlight: false)}")
        exit!(1)
      end

      def reap
        while (pid = Process.wait(-1, Process::WNOHANG))
          worker = @workers.delete(pid) or next
          next if worker.leaving

          say("worker #{worker.number} (process #{pid}) has ended (#{$?.to_s.sub(/\Apid \d+ /,
                                                                                 "")}); another one takes its place")
          @missing << [now - worker.since < SHORT_LIFE ? now + SHORT_LIFE : now, worker.number]
        end
      rescue Errno::ECHILD
        nil
      end

      def restart
        @settings.notify("RELOADING=1")
        @workers.values.reject(&:leaving).each { |worker| replace(worker) unless stopped? }
        @settings.notify("READY=1")
      end

      def replace(worker)
        successor = start(worker.number)
        return leave(worker) if successor.ready

        leave(successor, :KILL) # (it has ended, or is too slow; nobody is to take its place)
        return if stopped?

        say("worker #{worker.number} stays: the new one does not start")
      end

      def leave(worker, signal = :QUIT)
        worker.leaving = true
        Process.kill(signal, worker.pid)
      rescue Errno::ESRCH
        nil
      end

      # @param event [Symbol]
      def stop(event)
        @settings.notify("STOPPING=1")
        @workers.each_value { |worker| leave(worker, event == :stop ? :TERM : :QUIT) }
        delay if event == :stop
        @sockets.abandon
        limit = now + @settings.drain + 5
        reap
        reap while @workers.any? && wait_for_child(limit)
        @workers.each_key { |pid| Process.kill(:KILL, pid) && Process.wait(pid) }
        :stop
      end

      # While the workers go on: until the time is over, or a second signal comes.
      def delay
        ends = now + @settings.delay
        reap while (left = ends - now).positive? && @workers.any? && (event = @events.pop(timeout: left)) == :child
        @workers.each_value { |worker| leave(worker) } if event && event != :child
      end

      # @return [Boolean] false: they have had their time
      def wait_for_child(limit)
        event = @events.pop(timeout: [limit - now, 0].max)
        @workers.each_value { |worker| leave(worker) } if STOPS.include?(event) # once more
        !event.nil?
      end

      # Those of the program whose place this one has taken.
      def stop_predecessors
        ENV.delete(PREDECESSORS).to_s.split(",").each do |pid|
          @workers[Integer(pid)] = Worker.new(nil, Integer(pid), now, false)
          leave(@workers[Integer(pid)])
        end
      end

      def say(text) = @settings.say(text)
    end
  end
end
