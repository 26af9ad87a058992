# frozen_string_literal: true

# bin/test: takes 3 s, 0.8 of a core

require_relative "../test_helper"

# Old kernels and sandboxes (gVisor, an old seccomp profile) answer ENOSYS to each system call that they do not know.
# Heddle then does the same with older calls.
class RefusedCallsTest < HeddleTest
  FILTER = File.expand_path("../support/api/refused_calls.rb", __dir__)
  SCRIPT = <<~'RUBY'
    require "socket"
    require "tempfile"
    require "io/wait"
    file = Tempfile.new
    file.write("x" * 100_000)
    file.flush
    said = Heddle.run do
      ticks = 0
      Heddle.spawn(background: true) { loop { sleep(0.001) && ticks += 1 } }
      here, there = UNIXSocket.pair
      copied = Heddle.spawn { IO.copy_stream(file.path, here) && here.close }
      received = there.read.bytesize
      copied.value
      server = TCPServer.new("localhost", 0)
      Heddle.spawn(background: true) { server.accept.write("hello") }
      before = ticks
      status = Process.wait2(spawn("sleep 0.1; exit 3"))[1].exitstatus # pidfd_open
      queue = Thread::Queue.new
      Thread.new { sleep(0.02) && queue << :pushed }
      {
        file: received, read: File.read(file.path).size, pread: file.pread(3, 5), pwrite: file.pwrite("yy", 1),
        lines: File.foreach(file.path).count, stat: File.stat(file.path).size, found: File.file?(file.path),
        copy: IO.copy_stream(file.path, File::NULL), others: ticks > before, child: status,
        host: TCPSocket.new("localhost", server.local_address.ip_port).read(5), popen: IO.popen("echo said", &:read),
        command: Heddle.command("echo", "run").out, thread: queue.pop, worker: Heddle.offload { :offloaded },
        select: IO.select([there], nil, nil, 1)&.size, limit: (Heddle.timeout(0.0005) { sleep } rescue $!.class),
        forked: Process.wait2(fork { exit!(4) })[1].exitstatus
      }
    end
    p said
    backends = Heddle.backends
    warn backends.select { |one| one[:available] }.map { |one| one[:name] }.first,
         *backends.filter_map { |one| "#{one[:name]}: #{one[:reason]}" unless one[:available] }
  RUBY

  def run_script(*prefix) = run_command(*prefix, *ruby_command, "--disable=gems", "-rheddle", "-e", SCRIPT)

  def test_everything_works_without_the_new_calls
    outcome = run_script(*ruby_command, FILTER, "new")

    assert_predicate(outcome, :success?, outcome.err)
    assert_equal(run_script.out, outcome.out)
    assert_match(/:?child(=>|: )3\b/, outcome.out)
    backend, *reasons = outcome.err.lines(chomp: true)

    refute_equal("uring", backend)
    assert_match(/\Auring: .*this kernel has no io_uring/, reasons.first)
  end

  # As on a BSD.
  def test_everything_works_without_proc
    skip("only root can hide /proc") unless Process.euid.zero?
    hidden = run_script("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh")
    skip("no mounts here: #{hidden.err}") if hidden.err.match?(/\A(unshare|mount): /)

    assert_predicate(hidden, :success?, hidden.err)
    assert_equal(run_script.out, hidden.out)
  end

  # As in a container of Docker.
  def test_everything_works_without_io_uring
    outcome = run_script(*ruby_command, FILTER, "io_uring")

    assert_predicate(outcome, :success?, outcome.err)
    refute_match(/\Auring\n/, outcome.err)
    assert_match(/^uring: .*io_uring is switched off/, outcome.err)
  end
end
