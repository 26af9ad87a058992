# frozen_string_literal: true

require "fileutils"
require "json"
require "heddle/prometheus"
require_relative "../../server"

module Heddle
  class Server
    # Answers the requests for `heddle serve --control`: whether the server is alive and ready, and its figures. Each
    # worker can answer for all workers. It asks the others for their figures over UNIX sockets in a common folder.
    #
    # @private
    class Control
      # Seconds that the other workers have to send their figures, and that requests have to end.
      PATIENCE = 2
      # Seconds in which each worker has to show that its loop turns: fewer than a probe usually waits.
      LIVE_LIMIT = 0.7
      # The limits of the control server: it serves few clients, and none of them for long.
      LIMITS = { connections: 100, requests: 50, idle: 20, head_time: 5, stall: 5 }.freeze
      TEXT = { "content-type" => "text/plain; charset=utf-8", "cache-control" => "no-store" }.freeze
      private_constant :PATIENCE, :LIVE_LIMIT, :LIMITS, :TEXT

      # @param server [Server] the server that it answers for
      # @param listener [Listener]
      # @param worker [Integer]
      # @param folder [String, nil] the folder of the workers' sockets; nil: there is one process
      def initialize(server, listener, worker: 0, folder: nil)
        @server = server
        @worker = worker
        @folder = folder
        @ready = true
        FileUtils.mkdir_p(folder, mode: 0o700) if folder
        bind = [listener, *("unix:#{socket}" if folder)]
        @own = Server.new(method(:answer), bind: bind, limits: LIMITS, http2: false)
      end

      # Answers requests until its task is cancelled.
      #
      # @return [void]
      def run
        @own.run
      ensure
        remove_folder if @folder
      end

      # Answers from now on that the server is not ready, so that nobody sends it further requests.
      def leave = @ready = false

      # Stops answering: another worker answers from now on.
      #
      # @return [void]
      def hand_over = @own.stop(grace: PATIENCE)

      private

      def answer(env)
        return [405, { **TEXT, "allow" => "GET, HEAD" }, []] unless %w[GET HEAD].include?(env["REQUEST_METHOD"])

        case env["PATH_INFO"]
        when "/live" then live
        when "/ready" then @ready ? [200, TEXT.dup, ["ready\n"]] : [503, TEXT.dup, ["it stops\n"]]
        when "/metrics" then metrics
        when "/figures" then figures
        else [404, TEXT.dup, ["there are /live, /ready and /metrics\n"]]
        end
      end

      # Answers whether the loops of all workers turn. The worker that answers lives.
      def live
        alive = ask_others(LIVE_LIMIT).none?(:silent)
        alive ? [200, TEXT.dup, ["alive\n"]] : [503, TEXT.dup, ["the loop of a worker stands still\n"]]
      end

      def metrics
        families = @folder ? Prometheus.merge(of_all_workers) : own
        [200, { **TEXT, "content-type" => Prometheus::CONTENT_TYPE }, [Prometheus.text(families)]]
      end

      # @return [Hash{Hash => Array<Prometheus::Family>}] the figures by the label of each worker
      def of_all_workers
        all = [[@worker, own], *ask_others(PATIENCE).grep(Array)]
        all.sort_by(&:first).to_h { |worker, families| [{ worker: }, families] }
      end

      # Answers another worker, which asks for the figures of this one.
      def figures = [200, { **TEXT, "content-type" => "application/json" }, [JSON.generate([@worker, own.map(&:to_h)])]]

      def own = Prometheus.families(Heddle.stats) + of_server

      def of_server
        counts = @server.counts
        [Prometheus.by_label("heddle_server_connections", "gauge", "Connections by state.", :state,
                             counts.slice(:busy, :idle)),
         Prometheus.one("heddle_server_requests", "gauge", "Requests in the application.", counts[:requests]),
         Prometheus.by_label("heddle_server_responses_total", "counter", "Responses by status.", :class,
                             counts[:responses])]
      end

      # @param limit [Numeric] seconds that each one has
      # @return [Array] the answer of each of the other workers: see ask
      def ask_others(limit)
        others = @folder ? Dir.glob("#{@folder}/*.sock").reject { |path| path == socket } : []
        Heddle.map(others) { |path| ask(path, limit) }
      end

      # @return [Array(Integer, Array<Prometheus::Family>), :silent, nil] number and figures of the worker; :silent: it
      #   does not answer in time; nil: it has gone
      def ask(path, limit)
        worker, families = Heddle.timeout(limit) do
          UNIXSocket.open(path) do |socket|
            socket.write("GET /figures HTTP/1.0\r\n\r\n")
            JSON.parse(socket.read[/\r\n\r\n(.*)/m, 1], symbolize_names: true)
          end
        end
        [worker, families.map { |family| Prometheus::Family.new(**family) }]
      rescue Errno::ECONNREFUSED
        FileUtils.rm_f(path) # the worker was killed; another worker may remove the file at the same time
        nil
      rescue Heddle::TimeoutError
        :silent
      rescue SystemCallError, IOError, JSON::ParserError, TypeError
        nil
      end

      def socket = "#{@folder}/#{Process.pid}.sock"

      # Removes the folder, if this is the last worker that goes.
      def remove_folder
        Dir.rmdir(@folder)
      rescue SystemCallError
        nil
      end
    end
  end
end
