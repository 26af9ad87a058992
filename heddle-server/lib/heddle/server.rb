# frozen_string_literal: true

require "heddle"
require_relative "server/check"
require_relative "server/clock"
require_relative "server/access_log"
require_relative "server/application"
require_relative "server/connection"
require_relative "server/disconnected"
require_relative "server/idle_connections"
require_relative "server/limits"
require_relative "server/listener"

Heddle.exempt_from_time_slices(__dir__)

module Heddle
  # Serves a Rack application. Each connection is a task, which serves the requests of the connection one after another.
  # An idle connection has no task.
  #
  # The command `heddle serve` runs a server in one process or in several.
  #
  # @example
  #   require "heddle/server"
  #
  #   app = ->(env) { [200, { "content-type" => "text/plain" }, ["Hello\n"]] }
  #   server = Heddle::Server.new(app, bind: "tcp://127.0.0.1:0")
  #   Heddle.run do
  #     Heddle.spawn { server.run }
  #     puts Net::HTTP.get("127.0.0.1", "/", server.port)
  #     server.stop
  #   end
  class Server
    # The kinds of responses, by the first digit of their status.
    KINDS = [nil, "1xx", "2xx", "3xx", "4xx", "5xx"].freeze
    # The number of connections that the server keeps beyond its limit until their clients have seen the last answer. It
    # keeps as many again until their clients have seen a 503.
    TURNED_AWAY = 64
    # Seconds between two checks of the busy connections.
    WATCH_INTERVAL = 0.5
    # Seconds for which the server does not repeat the warning that it cannot accept connections.
    SILENCE = 60
    private_constant :KINDS, :TURNED_AWAY, :SILENCE, :WATCH_INTERVAL

    # @return [Limits] the limits of the server
    attr_reader :limits

    # @param app [#call] a Rack application
    # @param bind [String, IO, Array<String, IO>] where to listen: tcp://127.0.0.1:9292, unix:/run/app.sock,
    #   ssl://0.0.0.0:9292?cert=FILE&key=FILE; or a server socket. The sockets listen as soon as the server is made
    # @param limits [Hash{Symbol => Numeric}] see {Limits}
    # @param access_log [IO, nil] receives a line for each request
    # @param http2 [Boolean] whether the server speaks HTTP/2 over TLS, and with clients that begin with HTTP/2
    # @param cancel_disconnected [Boolean] whether a request is cancelled when its client leaves: see {Disconnected}
    # @raise [ArgumentError]
    # @raise [SystemCallError] if the server cannot listen there
    def initialize(app, bind: "tcp://127.0.0.1:9292", limits: {}, access_log: nil, http2: true,
                   cancel_disconnected: false)
      Check.responds("app", app, :call)
      Check.responds("access_log", access_log, :sync=) if access_log
      @limits = Limits.of(limits)
      @app = Application.new(app) { |error, request| report(error, request) }
      @cancel_disconnected = cancel_disconnected
      @http2 = http2 ? true : false
      require_relative "server/http2" if http2
      @access_log = access_log && AccessLog.new(access_log)
      @listeners = Listener.open_all(bind, http2: @http2)
      @idle = IdleConnections.new(@limits.idle, leave: method(:leave)) { |connection| start(connection) }
      @serving = {} # connection => its task
      @running = {}.compare_by_identity # request in the application => since when, by Clock
      @turned_away = 0
      @said = {} # class of an error => when it was reported
      @client_requests = Hash.new(0) # network of a client => its requests in the application
      @responses = KINDS.compact.to_h { |kind| [kind, 0] }
      @stopping = false
    end

    # @return [Array<String>] the addresses where the server listens, with the ports that the system has chosen
    def addresses = @listeners.map(&:to_s)

    # @return [Integer, nil] the port of the first address that has a port
    def port = @listeners.filter_map(&:port).first

    # @return [Boolean] whether the server speaks HTTP/2
    def http2? = @http2

    # @return [Boolean] whether the server has stopped accepting connections
    def stopping? = @stopping

    # @return [String]
    def inspect = "#<#{self.class} #{addresses.join(", ")}#{" (stopping)" if @stopping}>"

    # Accepts connections and serves them, until {#stop}.
    #
    # @return [void]
    def run
      Heddle.scope do |scope|
        @scope = scope
        @scope.spawn(background: true, name: "idle connections") { @idle.run }
        @listeners.each { |listener| @scope.spawn(name: "accept") { accept_from(listener) } }
      end
    ensure
      @listeners.each(&:close)
      @idle.close
    end

    # Stops accepting connections, closes the idle connections, and waits for the requests that are being answered.
    # Requests that take longer than the grace are cancelled.
    #
    # @param grace [Numeric] seconds
    # @yield before requests are cancelled
    # @return [void]
    def stop(grace: 30, &give_up)
      Check.seconds("grace", grace)
      return if @stopping

      @stopping = true
      @give_up = give_up
      @left = Thread::Queue.new
      if @scope
        @listeners.each { |listener| take_last(listener) }
        @idle.wake_all # to close a connection whose request is on its way would reset it
      end
      @idle.close
      @serving.each_key(&:drain)
      @left.pop(timeout: grace) unless @serving.empty?
      stop_now
    end

    # Cancels the requests that {#stop} waits for.
    #
    # @return [void]
    def stop_now
      return stop(grace: 0.001) unless @stopping

      @left << true
      @give_up&.call unless @running.empty?
      # A request may stop its server. Its own task is cancelled last, because that cancel ends this method.
      own = Heddle.current_task
      @serving.each_value { |task| task.cancel unless task.equal?(own) }
      own.cancel if @serving.value?(own)
    end

    # Calls the application and hands its response to the block. Both run in a scope of their own, so the tasks that the
    # application spawns are waited for.
    #
    # @private
    def handle(request)
      network = request.peer.network
      if @running.size >= @limits.requests || (network && @client_requests[network] >= @limits.client_requests)
        raise Refusal, 503
      end

      @running[request] = Clock.now
      count(network, 1)
      begin
        request.disconnected.cancel if @cancel_disconnected
        Heddle.run { yield(call(request)) }
      ensure
        @running.delete(request)
        count(network, -1)
      end
    end

    # @private Counts the answer to a request, and writes its line of the access log.
    # @param answer [Answer]
    # @param started [Float] when the request arrived, by Clock
    def answered(answer, started)
      kind = answer.status && KINDS[answer.status / 100]
      @responses[kind] += 1 if kind
      @access_log&.add(answer, Clock.now - started)
    end

    # @private
    # @return [Hash{Symbol => Object}] the numbers of :busy and :idle connections and of :requests in the application
    #   now, and the :responses so far by the kind of their status
    def counts = { busy: @serving.size, idle: @idle.size, requests: @running.size, responses: @responses.dup }

    # @private
    # @return [Array<Array(String, Float)>] method and path of each request in the application, and the seconds that it
    #   has taken so far
    def running = @running.map { |request, since| [name_of(request), Clock.now - since] }

    # @private Reports an error of the application, once. The error of a task that the request waits for is raised
    #   twice: by the task and by the request.
    # @param request [Request, nil]
    def report(error, request)
      return if request && !request.note(error)

      what = "the request #{name_of(request)}" if request
      Heddle.report(error, what)
    end

    private

    def name_of(request) = "#{request.method} #{request.path.dump[1..-2]}"

    # @param network [String, nil] of the client
    def count(network, number)
      @client_requests.delete(network) if network && (@client_requests[network] += number).zero?
    end

    # Calls the application within the limit request_time. Only the time until the answer begins is limited. The
    # application may take any time for the rest of its answer.
    def call(request)
      return @app.call(request) unless @limits.request_time

      Heddle.timeout(@limits.request_time) { @app.call(request) }
    rescue TimeoutError => e
      report(e, request)
      raise Refusal, 503
    end

    def accept_from(listener)
      until @stopping
        connection = accept(listener) or next
        room? ? start(connection) : turn_away(connection)
      end
    end

    # Answers a connection beyond the limit with 503. When many clients come at once, the server does not wait until
    # each has read its answer, so a reset may destroy the answer.
    def turn_away(connection)
      return connection.turn_away(linger: false) if @turned_away >= TURNED_AWAY

      @turned_away += 1
      @scope.spawn(isolated: true, background: true, name: "turned away") do
        connection.turn_away(linger: true)
      ensure
        @turned_away -= 1
      end
    rescue FiberError # no stack can be allocated for the task
      @turned_away -= 1
      connection.turn_away(linger: false)
    end

    # Accepts the connections that clients have opened by now, and closes the socket. To close the socket before that
    # would reset these connections.
    def take_last(listener)
      until (connection = accept(listener, :accept_nonblock)).nil?
        start(connection) if connection
      end
      listener.close
    end

    # @return [Connection, false, nil] false: this client has gone; nil: nobody has connected, or no connection can be
    #   accepted now
    def accept(listener, how = :accept)
      socket = listener.public_send(how) or return
      Connection.new(self, socket, listener.tls)
    rescue IOError
      raise unless @stopping
    rescue SystemCallError => e
      socket&.close
      socket || e.is_a?(Errno::ECONNABORTED) ? false : pause(e)
    end

    # Makes room when no connection can be accepted: closes an idle connection, or else waits.
    def pause(error)
      rest(error) unless @idle.close_oldest
      nil
    end

    def rest(error)
      return if @stopping

      if @said.fetch(error.class, -Float::INFINITY) < Clock.now - SILENCE
        @said[error.class] = Clock.now
        warn("Heddle::Server: #{error.message}: it accepts no connections for a while")
      end
      sleep(0.1)
    end

    def room? = @serving.size + @idle.size < @limits.connections || @idle.close_oldest

    # @param task [Symbol] the method of the connection that the task calls: :serve or :leave
    def start(connection, task = :serve)
      @scope.spawn(isolated: true, name: connection.method(:description)) do
        @serving[connection] = Heddle.current_task
        @watching ||= @scope.spawn(background: true, name: "watch") { watch }
        outcome = connection.public_send(task)
      ensure
        @serving.delete(connection)
        keep(connection) if outcome == :idle
        @left&.push(true) if @serving.empty?
      end
    rescue FiberError => e # no stack can be allocated for the task
      connection.turn_away(linger: false)
      rest(e)
    end

    # Looks after the connections from time to time, as long as some are busy.
    def watch
      until @serving.empty?
        sleep(WATCH_INTERVAL)
        now = Clock.now
        @serving.keys.each { |connection| connection.look_after(now) }
      end
    ensure
      @watching = nil
    end

    def keep(connection)
      @stopping ? leave(connection) : @idle.add(connection)
    end

    # Closes a connection. If bytes of its last answer may still be under way, a task first waits for the client. That
    # takes time and a descriptor, so it is done only if the wait helps, and not for many clients at once.
    def leave(connection)
      spare = @scope&.open? && @serving.size + @idle.size < @limits.connections + TURNED_AWAY
      spare && connection.under_way? ? start(connection, :leave) : connection.close
    end
  end
end
