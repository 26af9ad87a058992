# frozen_string_literal: true

# bin/test: takes 9 s, 0.6 of a core

require_relative "../../test_helper"

EXHAUSTION = <<~RUBY
  def use_up_descriptors
    Process.setrlimit(:NOFILE, 100)
    loop { ($kept ||= []) << IO.for_fd(IO.sysopen("/dev/null")) }
  rescue Errno::EMFILE
    nil
  end

  # (A limit of threads does not bind root.)
  def use_up_threads
    Process.setrlimit(:NPROC, 1)
    return unless Process.uid.zero?

    user = 100_000 + Process.pid
    Process::Sys.setgid(user)
    Process::Sys.setuid(user)
  end

  def prepare
    { $path => 10_000, $path + "b" => 3_000_000 }.each { |path, size| File.write(path, "x" * size) }
    File.chmod(0o666, $path)
    $file, $big = File.open($path, "r+b"), File.open($path + "b", "rb")
    $reader, $writer = IO.pipe
    $server = TCPServer.new("127.0.0.1", 0)
    $child = fork { exit!(3) }
  end

  def run_without(code, &)
    Heddle.run do
      sleep(0.001)
      yield
      code.call
    end.inspect.delete('"')
  rescue Exception => e
    e.inspect
  end

  def outcome_of(code, &)
    ours, theirs = IO.pipe
    pid = fork do
      ours.close
      prepare
      theirs.syswrite(run_without(code, &))
      exit!(0)
    end
    theirs.close
    return ours.read if ours.wait_readable(30)

    Process.kill(:KILL, pid)
    "hangs"
  ensure
    Process.wait(pid)
  end
RUBY

# When no thread or no descriptor is left, plain Ruby goes on with what is open already, and so does Heddle: it does
# inline what it would give to a worker.
contract "Exhaustion" do
  # What goes on without descriptors, and what without threads. $file is written and read, $big is read.
  both = {
    "large write" => ["$file.write('y' * 3_000_000); $file.flush; $file.size", 3_000_000],
    "small write" => ["$file.write('y'); $file.flush; $file.size", 10_000],
    "a close that flushes" => ["$file.seek(0, :END); $file.write('y'); $file.close; File.size($path)", 10_001],
    "syswrite" => ["$file.syswrite('abc')", 3],
    "pwrite" => ["$file.pwrite('abc', 5)", 3],
    "read" => ["$big.read.size", 3_000_000],
    "sysread" => ["$big.sysread(1000).size", 1000],
    "pread" => ["$big.pread(100, 1000).size", 100],
    "fsync" => ["$file.fsync", 0],
    "fdatasync" => ["$file.fdatasync", 0],
    "truncate" => ["$file.truncate(3); $file.size", 3],
    "a lock" => ["$file.flock(File::LOCK_EX)", 0],
    "copy of a file" => ["IO.copy_stream($big, $file)", 3_000_000],
    "copy to a pipe" => ["IO.copy_stream($big, $writer, 10_000)", 10_000],
    "looks" => ["[File.exist?($path), File.exist?($path + 'x'), File.size($path)]", [true, false, 10_000]],
    "rename" => ["File.rename($path, $path + '2'); File.unlink($path + '2')", 1],
    "pipe" => ["$writer.write('abc'); $reader.readpartial(10)", "abc"],
    "select" => ["IO.select([$reader], [$writer], nil, 0.01).map(&:size)", [0, 1, 0]],
    "sleep" => ["sleep(0.01) < 2", true], # (Ruby counts the seconds that have begun meanwhile)
    "a child" => ["Process.wait2($child).last.exitstatus", 3],
    "any child" => ["Process.wait2.last.exitstatus", 3],
    "a timeout" => ["Timeout.timeout(0.02) { sleep } rescue $!.class", "Timeout::Error"]
  }
  only_without_threads = {
    "open" => ["File.open($path) { |file| file.read.size }", 10_000],
    "writing open" => ["File.write($path + '3', 'abc'); File.read($path + '3')", "abc"],
    "folder" => ["Dir.children(File.dirname($path)).size > 1 && Dir.glob(File.dirname($path) + '/*').size > 1", true],
    "name" => ["Addrinfo.getaddrinfo('localhost', 80).empty?", false],
    "name of an address" => ["Addrinfo.tcp('127.0.0.1', 80).getnameinfo.size", 2],
    "connection by name" => ["TCPSocket.new('localhost', $server.local_address.ip_port).close", nil],
    "timeouts" => ["100.times { Timeout.timeout(5) { 1 } }", 100]
  }
  { "descriptor" => both, "thread" => both.merge(only_without_threads) }.each do |what, cases|
    define_method("test_without_a_#{what}") do
      heddle_only("Ruby's own threads")
      expected = cases.transform_values { |_, value| value.inspect.delete('"') }

      assert_equal(expected, without(what, cases.transform_values(&:first)))
    end
  end

  # Nobody but this process can give it back: the others go on, and so does the holder.
  def test_no_thread_to_wait_for_a_lock
    heddle_only("Ruby's own threads")
    out = without("thread", { "lock" => <<~RUBY })
      other = File.open($path)
      other.flock(File::LOCK_EX)
      holder = Heddle.spawn { 10.times { sleep(0.005) }; other.flock(File::LOCK_UN) }
      [$file.flock(File::LOCK_EX), holder.finished?]
    RUBY

    assert_equal({ "lock" => "[0, true]" }, out)
  end

  # Its other end is in another process.
  def test_no_thread_to_wait_for_the_other_end_of_a_fifo
    heddle_only("Ruby's own threads")
    out = without("thread", { "fifo" => "File.read($fifo)" }, before: <<~RUBY)
      $fifo = $path + ".fifo"
      File.mkfifo($fifo)
      File.chmod(0o666, $fifo)
      fork { File.write($fifo, "from there") }
    RUBY

    assert_equal({ "fifo" => "from there" }, out)
  end

  private

  # What each piece of code gives in a process of its own that has used up all descriptors or threads.
  def without(what, codes, before: "")
    dir = Dir.mktmpdir
    File.chmod(0o777, dir)
    cases = codes.map { |name, code| "[#{name.inspect}, -> { #{code} }]" }.join(",\n")
    script = <<~RUBY
      require "socket"
      require "timeout"
      $path = "#{dir}/file"
      #{EXHAUSTION}
      #{before}
      [#{cases}].each { |name, code| puts("\#{name}=\#{outcome_of(code) { use_up_#{what}s }}") }
    RUBY
    out = assert_script(script, env: { "HEDDLE_BACKEND" => backend }, options: ["-W0"])
    out.lines.to_h { |line| line.chomp.split("=", 2) }
  ensure
    FileUtils.remove_entry(dir)
  end
end
