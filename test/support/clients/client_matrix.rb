# frozen_string_literal: true

require "support/clients"
require "support/clients/client_figures"
require "support/servers/failing_servers"

module TestSupport
  # Questions to every client. A contract that extends Clients includes this, and says:
  #
  #   def title = "Faraday, net_http"    # in the table of guides/clients.md
  #   def open_client(timeout:)          # a client; its own limit for an answer, in seconds
  #   def ask(client, number, seconds)   # an answer for which the server takes this time:
  #                                      # returns the number
  #   def close_client(client)
  #   def timeout_errors = [Faraday::TimeoutError]   # what the client's own limit raises; empty if it has none
  #
  # and, where it differs: #asked, #after_a_cancel, #shortest_timeout, #timeout_of_one_that_is_closed,
  # #connects_for_each_question?, #limit_of_the_server?.
  module ClientMatrix
    include FailingServers

    COUNT = 50
    SECONDS = 0.2

    # What the clients ask: it has #paused and #unread.
    def asked = @late_server || server

    # In seconds: pg, for one, knows whole ones.
    def shortest_timeout = 0.2

    # In seconds. A client whose close is noticed only by its own limit has a smaller number.
    def timeout_of_one_that_is_closed = 20

    # The client that was cancelled (:usable, :broken: it raises, or :either), as its documentation says.
    def after_a_cancel = :either

    # Whether a timeout may come while it connects, because it has no connection yet.
    def connects_for_each_question? = false

    # 50 questions are at the server before one is answered, and others run whenever it does nothing.
    def test_matrix_fifty_answers_at_once
      heddle_only("it is about tasks")
      with_fifty_clients do |clients|
        assert_overlaps(COUNT, asked) { fifty_answers(clients) }
        measure(clients) if ClientFigures.wanted?
      end
    end

    def test_matrix_timeout
      heddle_only("it is about tasks")
      note(timeout: nil) if timeout_errors.empty?
      skip("it has no limit of its own") if timeout_errors.empty?
      Heddle.run(backend: backend) do
        client = open_client(timeout: shortest_timeout)
        error = assert_times_out(shortest_timeout, *timeout_errors) { ask(client, 1, 20) }
        note(timeout: error.class.name)
      ensure
        close_quietly(client)
      end
    end

    # The answer of the question that was cancelled must not be taken for another one's.
    def test_matrix_cancel
      heddle_only("it is about tasks")
      Heddle.run(backend: backend) do
        client = open_client(timeout: 10)
        %i[cancel_task time_out].product([true, false]) do |how, answered|
          late = end_question(client, how)
          sleep(late + 0.1) if answered # the answer comes meanwhile, or does not yet
          ask_again(client, how) || (client = replace(client))
        end
      ensure
        close_quietly(client)
      end
    end

    # Who waits for an answer of the connection that another task closes does not wait for ever.
    def test_matrix_close_while_it_waits
      heddle_only("it is about tasks")
      Heddle.run(backend: backend) do
        Heddle.shared_io = :ignore # a goodbye may have an answer, too
        client = open_client(timeout: timeout_of_one_that_is_closed)
        waiting = Heddle.spawn(isolated: true) { ask(client, 7, 1) }
        waiting.wait(0.1)
        refused = error_of { close_client(client) }

        refute_nil(waiting.wait(15), "it waits for ever")
        assert_equal(7, waiting.value) unless waiting.error
        note(close: refused ? "close raises #{refused.class}" : waiting.error&.class&.name || "answered")
      ensure
        Heddle.shared_io = :warn
        close_quietly(client)
      end
    end

    private

    def note(**figures) = ClientFigures.note(title: title, version: client_version, **figures)

    # All are connected, and have time enough on a slow machine.
    def with_fifty_clients
      Heddle.run(backend: backend) do
        clients = Heddle.map(1..COUNT) { open_client(timeout: 60) }
        yield(clients)
      ensure
        clients&.each { |client| close_quietly(client) }
      end
    end

    # Each takes 0.2 s.
    def fifty_answers(clients)
      values = Heddle.map(clients.each_with_index) { |client, i| ask(client, i, SECONDS) }

      assert_equal([*0...COUNT], values)
    end

    # For the table of guides/clients.md. No test decides by it.
    def measure(clients)
      took = nil
      hold, blocked = longest_gaps { took = elapsed { fifty_answers(clients) } }
      note(took: took, hold: hold, blocked: blocked)
    end

    # @return [Array(Float, Float)] the longest time between two ticks of another task, in seconds; and the longest time
    #   of which this process neither used a processor nor waited for one
    def longest_gaps
      ticks = [tick]
      ticker = Heddle.spawn { loop { ticks << tick if sleep(0.01) } }
      yield
      ticks << tick
      gaps = ticks.each_cons(2).map { |before, after| after.zip(before).map { |one, other| one - other } }
      [gaps.map(&:first).max, gaps.map { |wall, *busy| wall - busy.sum }.max]
    ensure
      ticker&.cancel
    end

    def tick = [now, Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID), starved]

    # Asks, and ends the question before it is answered.
    # @return [Float] the seconds that the answer takes
    def end_question(client, how)
      [0.2, 1, 5].find { |late| send(how, client, late) } or flunk("it is not ended, but answered in time")
    end

    def cancel_task(client, late)
      asking = Heddle.spawn { ask(client, 1, late) }
      asking.wait(0.05)
      asking.cancel.wait(20)
      asking.cancelled?
    end

    # A timeout that its own task rescues leaves the socket of a TLS handshake open: the task may go on with it. So a
    # question that may be connecting has a task of its own, which ends.
    def time_out(client, late)
      question = -> { Timeout.timeout(0.05) { ask(client, 1, late) } }
      connects_for_each_question? ? Heddle.spawn(isolated: true, &question).value : question.call
      false
    rescue StandardError
      true
    end

    # @return [Boolean] whether the client could be used afterwards
    def ask_again(client, how)
      mend(client) if after_a_cancel == :wrong
      outcome = begin
        Timeout.timeout(20) { ask(client, 2, 0) }
      rescue StandardError => e
        e
      end
      broken = outcome.is_a?(StandardError)
      assert_equal(2, outcome) unless broken
      note_after_a_cancel(broken, outcome) if how == :cancel_task # (mysql2 puts timeouts off, and is usable)
      !broken
    end

    def note_after_a_cancel(broken, outcome)
      expected = { wrong: :usable }.fetch(after_a_cancel, after_a_cancel) # (it was mended)
      assert_equal(expected, broken ? :broken : :usable, outcome.inspect) unless expected == :either
      note(cancel: in_words(broken, outcome))
    end

    def in_words(broken, outcome)
      return what_is_wrong if after_a_cancel == :wrong

      broken ? "raises #{outcome.class}" : "usable"
    end

    def error_of
      yield
      nil
    rescue StandardError => e
      e
    end

    def replace(client)
      close_quietly(client)
      new = open_client(timeout: 10)

      assert_equal(3, ask(new, 3, 0))
      new
    end

    def close_quietly(client)
      close_client(client) if client
    rescue StandardError
      nil # it is closed, or broken
    end

    # For a client that takes the late answer for that of the next question, on plain threads as well. #mend is what
    # the guide says to do after a cancel.
    module WrongAfterACancel
      def after_a_cancel = :wrong
      def what_is_wrong = "takes the late answer for the next one"

      # What a client does wrong after a cancel must not be Heddle's fault, and must have a remedy.
      def test_matrix_wrong_on_plain_threads_too
        heddle_only("it is about tasks")
        Thread.new do
          client = open_client(timeout: 10)
          end_question(client, :time_out)

          refute_equal(2, ask(client, 2, 0))
        ensure
          close_quietly(client)
        end.join
      end
    end
  end
end
