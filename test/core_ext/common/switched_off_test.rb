# frozen_string_literal: true

require_relative "../../test_helper"

# HEDDLE_WITHOUT: each patch can be switched off, and the others stay what they are.
class SwitchedOffTest < HeddleTest
  # Tasks that do a little of everything, with both ends in the same thread, so that nothing may hold it up; and what of
  # Ruby's methods is Heddle's afterwards.
  SMOKE = <<~'RUBY'
    require "socket"
    require "tmpdir"
    require "timeout"
    said = Heddle.run do
      reader, writer = IO.pipe
      read = Heddle.spawn { reader.gets }
      Heddle.spawn { sleep(0.001) && writer.puts("one", "two") }
      server = TCPServer.new("127.0.0.1", 0)
      serving = Heddle.spawn { server.accept.then { |one| [one.gets, one.write("reply"), one.close].first } }
      client = TCPSocket.new("127.0.0.1", server.local_address.ip_port)
      client.write("call\n")
      answers = [client.read, serving.value, read.value, begin
        client.close && Timeout.timeout(0.01) { sleep }
      rescue Timeout::Error
        :timeout
      end]
      Dir.mktmpdir do |dir|
        File.write("#{dir}/a", "text")
        answers << File.read("#{dir}/a") << Dir.children(dir) << File.exist?("#{dir}/b") << File.size("#{dir}/a")
        answers << File.open("#{dir}/a") { |file| file.flock(File::LOCK_SH) && file.read(2) }
        File.open("#{dir}/a", "r+") { |file| file.write("x") && file.fsync }
        answers << IO.copy_stream("#{dir}/a", "#{dir}/b") << File.foreach("#{dir}/b").to_a
        answers << Dir.glob("*", base: dir).size
        File.mkfifo("#{dir}/fifo")
        answers << IO.popen(["cat", "#{dir}/b"], &:read) << system("true")
        answers << Process.wait2(fork { exit!(3) }).last.exitstatus
        writing = Thread.new { File.write("#{dir}/fifo", "through") }
        answers << File.read("#{dir}/fifo") << writing.join.status
      end
      lock, condition = Mutex.new, ConditionVariable.new
      answers << lock.synchronize { condition.wait(lock, 0.001) && nil }
      if Heddle.patches.find { |patch| patch.name == :fiber_raise }.active? # (Ruby loses the caller)
        Fiber.schedule { sleep rescue (raise unless $!.message == "raised") }.raise("raised")
      end
      Heddle.spawn { sleep }.cancel
      answers << (reader.read_nonblock(1, exception: false) && Addrinfo.tcp("127.0.0.1", 80).getnameinfo(3))
      answers << begin
        reader.read_nonblock(20) && reader.read_nonblock(1)
      rescue IO::WaitReadable
        :wait
      end
      answers
    end
    kept = [IO, File, Dir, Kernel, Process, Fiber, Thread, Mutex, ConditionVariable, Addrinfo, Socket, BasicSocket,
            IPSocket, TCPSocket, TCPServer, UDPSocket, UNIXServer, Timeout, Ractor]
    kept = kept.flat_map { |one| [one, one.singleton_class] }.flat_map do |one|
      names = one.private_instance_methods(false) + one.instance_methods(false)
      names.grep(/__heddle_/).map { |name| "#{one.inspect} #{name}" }
    end.sort
    puts([said.inspect, Heddle.patches.reject(&:active?).map(&:name).join(" "), *kept])
  RUBY

  def smoke(without)
    outcome = run_ruby(SMOKE, env: { "HEDDLE_WITHOUT" => without })

    assert_equal(["", true], [outcome.err, outcome.status.success?], without)
    said, inactive, *kept = outcome.out.lines(chomp: true)
    [said, inactive.split.map(&:to_sym), kept]
  end

  Heddle.patches.select(&:active?).each do |patch|
    define_method("test_without_#{patch.name}") do
      with = self.class.with ||= smoke("")
      said, inactive, kept = smoke(patch.name.to_s)

      assert_equal(with[0], said)
      assert_equal([patch.name], inactive - with[1])
      assert_equal(second_names(patch).sort, with[2] - kept)
      assert_empty(kept - with[2])
    end
  end

  class << self
    attr_accessor :with
  end

  def test_without_any
    all = Heddle.patches.map(&:name)
    _, inactive, kept = smoke(all.join(","))

    assert_equal(all, inactive)
    assert_empty(kept)
  end

  def test_several_with_spaces
    assert_equal(%i[copy_stream timeout], smoke(" timeout, copy_stream,").fetch(1) - smoke("").fetch(1))
  end

  def test_what_is_switched_off_is_ruby_s_own
    code = <<~RUBY
      methods = lambda do
        [IO.instance_method(:close), Timeout.method(:timeout).unbind,
         IO::EAGAINWaitReadable.instance_method(:initialize)]
      end
      before = methods.call
      require "heddle"
      Heddle.run { nil }
      print(before == methods.call)
    RUBY
    env = { "HEDDLE_WITHOUT" => "io_close,timeout,would_block_errors" }

    assert_equal("true", run_ruby(code, heddle: false, env: env, options: ["-rtimeout"]).out)
  end

  %w[heddle heddle/would_block].each do |library|
    define_method("test_an_unknown_name_with_#{library}") do
      code = "begin; require(#{library.dump}); rescue ArgumentError; print($!.message); end"
      said = run_ruby(code, heddle: false, env: { "HEDDLE_WITHOUT" => "io_close,closes" }).out

      assert_match(/\AHEDDLE_WITHOUT: there is no patch closes; these can be switched off: service_names, /, said)
    end
  end

  private

  # What a patch calls Ruby's methods.
  def second_names(patch)
    Heddle::CoreExt.replacements.select { |one, *| one.equal?(patch) }.flat_map do |_, owner, methods|
      names = [methods] if methods.is_a?(Symbol)
      names ||= methods.instance_methods(false) + methods.private_instance_methods(false)
      names.map { |name| "#{owner.inspect} #{patch.kept}#{name}" }
    end
  end
end
