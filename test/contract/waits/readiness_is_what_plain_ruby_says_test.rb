# frozen_string_literal: true

require_relative "../../test_helper"
require "support/io/io_states"

# What IO.select and IO#wait say of all kinds of IO in all states is what plain Ruby says. select(2) and poll(2) differ
# at a hang-up and at an error.
contract "Readiness" do
  sets = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1], [1, 1, 1]]
  # (a timeout of 0 is a look, the other one a wait)
  ways = [0, 0.003].flat_map do |timeout|
    selects = sets.map do |three|
      ["IO.select of #{three}", timeout, ->(io, limit) { IO.select(*three.map { |n| [io] * n }, limit)&.map(&:size) }]
    end
    waits = (1..7).map { |events| ["wait(#{events})", timeout, ->(io, limit) { io.wait(events, limit) }] }
    methods = %i[wait_readable wait_writable wait_priority].map do |name|
      [name, timeout, ->(io, limit) { io.public_send(name, limit) }]
    end
    selects + waits + methods
  end
  known = {} # by plain Ruby

  with_errors = ["udp, refused", "tcp, reset", "unix, reset", "unix, full, closed by the peer"]

  TestSupport::IOStates.all.each do |state, make|
    define_method("test_#{state.gsub(/\W+/, "_")}") do
      needs_pending_errors if with_errors.include?(state)
      known[state] ||= answers(make, ways)

      reactor { assert_equal(known[state], answers(make, ways)) }
    end
  end

  def answers(make, ways)
    made = make.call(tempdir)
    io = made.first
    ways.to_h { |name, timeout, way| [[name, timeout], answer(io) { way.call(io, timeout) }] }
  ensure
    made&.each(&:close)
  end

  def answer(io)
    given = yield
    given.equal?(io) ? :io : given
  rescue IOError => e
    e.message
  end

  # Hazard: an error or a hang-up that nobody asked for is reported at once, again and again.
  { "that_nobody_reads" => "pipe, no reader", "that_has_ended" => "pipe, end" }.each do |name, state|
    define_method("test_a_pipe_#{name}_is_waited_for_in_peace") do
      reactor do
        made = TestSupport::IOStates.all.fetch(state).call(tempdir).each { |io| keep(io) }

        assert_nil(assert_no_spinning { IO.select(nil, nil, [made.first], 0.1) })
      end
    end
  end

  # It hangs up for good, and becomes writable later.
  def test_an_event_after_a_hang_up
    reactor do
      one, other = socket_pair
      filled = fill(one)
      one.shutdown(:RDWR)
      job = go { IO.select(nil, [one], nil, 20) }
      urgent = go { IO.select(nil, nil, [one], 0.4) }
      assert_no_spinning { sleep(0.1) }

      refute_predicate(job, :finished?)
      assert_equal(one, one.wait_readable(5))
      drain(other, filled)

      assert_equal([[], [one], []], job.value)
      assert_nil(assert_no_spinning { urgent.value })
    end
  end

  # (IO.select of a thread is not woken when another thread closes the IO: it waits for ever.)
  def test_the_descriptor_is_used_again_after_a_select_at_a_hang_up
    heddle_only("IO.select does not end when its IO is closed")
    reactor do
      20.times do
        reader, writer = IO.pipe
        writer.close
        job = go { IO.select(nil, nil, [reader]) }
        settle
        sleep(0.001)
        reader.close

        assert_instance_of(IOError, job.failure)
        fresh, fresh_writer = IO.pipe
        waiting = go { fresh.gets }
        settle
        fresh_writer.puts("line")

        assert_equal("line\n", waiting.value)
        [fresh, fresh_writer].each(&:close)
      end
    end
  end

  { "a_wait" => ->(file) { file.wait_priority }, "a_select" => ->(file) { IO.select(nil, nil, [file]) } }
    .each do |name, wait|
      define_method("test_#{name}_for_a_file_lasts_until_it_is_closed") do
        heddle_only("IO.select does not end when its IO is closed") if name == "a_select"
        reactor do
          file = keep(File.open(__FILE__))
          job = go { wait.call(file) }
          settle
          sleep(0.01)

          refute_predicate(job, :finished?)
          file.close

          assert_instance_of(IOError, job.failure)
        end
      end
    end

  # (It looks again, for the descriptor is another file's then.)
  def test_a_file_whose_twin_is_reopened_has_no_events_but_those_that_were_asked_for
    heddle_only("plain Ruby does not look again")
    reactor do
      file = keep(File.open(__FILE__))
      twin = keep(File.for_fd(file.fileno, autoclose: false))
      job = go { file.wait(IO::PRIORITY, 5) }
      settle
      twin.reopen(File::NULL)

      assert_equal(IO::PRIORITY, job.value)
    end
  end
end
