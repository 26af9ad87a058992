# frozen_string_literal: true

require "json"
require_relative "../prometheus"
require_relative "../server"

module Heddle
  class Server
    # What `heddle serve --control` answers: whether the server is alive and ready, and its figures. Each worker can
    # answer for all of them; it asks the others for their figures over UNIX sockets in a folder of theirs.
    #
    # @private
    class Control
      # Seconds that the other workers have to tell their figures, and that requests have to end.
      PATIENCE = 2
      TEXT = { "content-type" => "text/plain; charset=utf-8", "cache-control" => "no-store" }.freeze
      private_constant :PATIENCE, :TEXT

      # @param server [Server] whose state it tells
      # @param listener [Listener]
      # @param worker [Integer]
      # @param folder [String, nil] of the workers' sockets; nil: it is the only one
      def initialize(server, listener, worker: 0, folder: nil)
        @server = server
        @worker = worker
        @folder = folder
        @ready = true
        make_folder if folder
        @own = Server.new(method(:answer), bind: [listener, *("unix:#{socket}" if folder)], http2: false)
      end

      # Until its task is cancelled.
      #
      # @return [void]
      def run
        @own.run
      ensure
        remove_folder if @folder
      end

      # From now on the server is not ready: nobody is to send it more requests.
      def leave = @ready = false

      # Another worker answers from now on.
      #
      # @return [void]
      def hand_over = @own.stop(grace: PATIENCE)

      private

      def answer(env)
        case env["PATH_INFO"]
        when "/live" then [200, TEXT.dup, ["alive\n"]]
        when "/ready" then @ready ? [200, TEXT.dup, ["ready\n"]] : [503, TEXT.dup, ["it stops\n"]]
        when "/metrics" then metrics
        when "/figures" then figures
        else [404, TEXT.dup, ["there are /live, /ready and /metrics\n"]]
        end
      end

      def metrics
        text = Prometheus.text(Prometheus.merge(all))
        [200, { **TEXT, "content-type" => Prometheus::CONTENT_TYPE }, [text]]
      end

      # What another worker asks for.
      def figures = [200, { **TEXT, "content-type" => "application/json" }, [JSON.generate([@worker, own.map(&:to_a)])]]

      def own = Prometheus.families(Heddle.stats) + of_server

      def of_server
        counts = @server.counts
        [Prometheus.by_state("heddle_server_connections", "Connections by state.", :state,
                             counts.slice(:busy, :idle)),
         Prometheus.one("heddle_server_requests", "gauge", "Requests in the application.", counts[:requests]),
         Prometheus.one("heddle_server_requests_total", "counter", "Requests that were answered.", counts[:answered])]
      end

      # @return [Hash{Hash => Array<Prometheus::Family>}] by the label of each worker
      def all
        return { {} => own } unless @folder

        others = Dir.glob("#{@folder}/*.sock").reject { |path| path == socket }
        told = Heddle.map(others, limit: 10) { |path| ask(path) }.compact
        [[@worker, own], *told].sort_by(&:first).to_h { |worker, families| [{ worker: }, families] }
      end

      # @return [Array(Integer, Array<Prometheus::Family>), nil] nil: that worker has gone, or does not answer in time
      def ask(path)
        worker, families = Heddle.timeout(PATIENCE) do
          UNIXSocket.open(path) do |socket|
            socket.write("GET /figures HTTP/1.0\r\n\r\n")
            JSON.parse(socket.read[/\r\n\r\n(.*)/m, 1])
          end
        end
        [worker, families.map { |name, type, help, samples| Prometheus::Family.new(name, type, help, samples) }]
      rescue Errno::ECONNREFUSED
        File.unlink(path) # (it was killed)
        nil
      rescue SystemCallError, IOError, Heddle::TimeoutError, JSON::ParserError, TypeError
        nil
      end

      def socket = "#{@folder}/#{Process.pid}.sock"

      def make_folder
        Dir.mkdir(@folder, 0o700)
      rescue Errno::EEXIST
        nil
      end

      # The last worker that goes removes it.
      def remove_folder
        Dir.rmdir(@folder)
      rescue SystemCallError
        nil
      end
    end
  end
end
