# frozen_string_literal: true

require "delegate"
require "support/servers/late_proxy"

module TestSupport
  # For ClientMatrix: the server is killed, or stands still, when it has a question. Each question then ends with its
  # own answer or with an error, and the answer that comes late is not taken for another one. The process that is killed
  # and stopped is a proxy before the server.
  module FailingServers
    # A server whose port is that of a proxy before it.
    class Proxied < SimpleDelegator
      # @return [Servers::LateProxy]
      attr_reader :proxy

      def initialize(server, port)
        super(server)
        @proxy = Servers::LateProxy.new(port).tap(&:start)
      end

      def port = proxy.port
      alias tls_port port
    end
    private_constant :Proxied

    # In seconds. Longer than #shortest_timeout: a client may ask a question when it is opened.
    LIMIT = 1

    # Whether only the server ends an answer that takes too long: then a Timeout ends it here.
    def limit_of_the_server? = false

    # What the client's own limit raises if the server stands still before the question has a connection.
    def errors_of_a_server_that_stands_still = timeout_errors

    def test_matrix_the_server_is_killed
      through_a_proxy do |proxy|
        clients = Heddle.map(0...3) { open_client(timeout: 10) }
        asking = clients.each_with_index.map { |one, number| Heddle.spawn(isolated: true) { ask(one, number, 5) } }
        asking.each { |task| task.wait(0.1) }
        proxy.killed { asking.each_with_index { |task, number| assert_ended(task, number) } }
        clients.each_with_index { |one, number| ask_for_its_own(one, 10 + number) }
      ensure
        clients&.each { |client| close_quietly(client) }
      end
    end

    def test_matrix_the_server_stands_still
      through_a_proxy do |proxy|
        client = open_client(timeout: LIMIT)
        errors = errors_of_a_server_that_stands_still + (by_timeout? ? [Timeout::Error] : [])

        proxy.paused { assert_times_out(LIMIT, *errors) { ask_in_time(client) } }
        sleep(0.1) # the late answer comes
        ask_for_its_own(client, 2)
      ensure
        close_quietly(client)
      end
    end

    private

    def through_a_proxy(&)
      heddle_only("it is about tasks")
      ports = [(port if respond_to?(:port)), *[@late_server, server].compact.map(&:port)].compact
      skip("it has no port") if ports.empty?
      in_place_of_the_server(Proxied.new(server, ports.first), &)
    end

    def in_place_of_the_server(proxied)
      before = [@server, @late_server]
      @server = proxied
      @late_server &&= proxied
      Heddle.run(backend:) do
        yield(proxied.proxy)

        assert_a_new_client_is_answered
      end
    ensure
      proxied.proxy.stop
      @server, @late_server = before
    end

    def by_timeout? = limit_of_the_server? || timeout_errors.empty?

    # A task that ends in a TLS handshake leaves no socket, as in ClientMatrix#time_out.
    def ask_in_time(client)
      question = -> { by_timeout? ? Timeout.timeout(LIMIT) { ask(client, 1, 0) } : ask(client, 1, 0) }
      connects_for_each_question? ? Heddle.spawn(isolated: true, &question).value : question.call
    end

    def assert_ended(task, number)
      refute_nil(task.wait(30), "it waits for ever")
      assert_equal(number, task.value) unless task.error
    end

    # The client may be broken.
    def ask_for_its_own(client, number)
      mend(client) if respond_to?(:mend)
      answer = Timeout.timeout(20) { ask(client, number, 0) }

      assert_equal(number, answer)
    rescue StandardError
      nil
    end

    def assert_a_new_client_is_answered
      client = open_client(timeout: 10)

      assert_equal(3, ask(client, 3, 0))
    ensure
      close_quietly(client)
    end
  end
end
