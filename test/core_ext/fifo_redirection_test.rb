# frozen_string_literal: true

require_relative "../test_helper"

# A program that is started with a FIFO for its input or output holds up only the fiber that starts it.
contract "FifoRedirection" do
  def fifo = @fifo ||= File.join(tempdir, "fifo").tap { |path| File.mkfifo(path) }

  { "popen" => ->(path) { IO.popen("cat", in: path, &:read) },
    "popen_without_a_block" => ->(path) { IO.popen(["cat"], "r", in: path).then { |io| io.read.tap { io.close } } },
    "spawn" => lambda do |path|
      reader, writer = IO.pipe
      pid = spawn("cat", in: path, out: writer)
      writer.close
      reader.read.tap { Process.wait(pid) && reader.close }
    end,
    "backticks_like_system" => lambda do |path|
      target = "#{path}.out"
      system("cat", in: [path, "r"], out: target)
      File.read(target)
    end }.each do |name, reading|
    define_method("test_#{name}") do
      path = fifo
      reactor do
        text = assert_others_run do
          go { others_have_run && File.open(path, "w") { |file| file.write("one\ntwo\n") } }
          reading.call(path)
        end

        assert_equal("one\ntwo\n", text)
      end
    end
  end

  def test_a_program_writes_to_a_fifo
    path = fifo
    reactor do
      reading = go { others_have_run && File.read(path) }
      assert_others_run { assert(system("echo", "text", %i[out err] => path)) }

      assert_equal("text\n", reading.value)
      reading = go { File.read(path) }
      texts = IO.popen("echo more >&2", err: path) { |io| [io.read, reading.value] }

      assert_equal(["", "more\n"], texts)
    end
  end

  def test_other_redirections_are_ruby_s_own
    target = File.join(tempdir, "target")
    reactor do
      reader, writer = pipe
      Process.wait(Process.spawn("echo out; echo err >&2", out: writer, err: %i[child out]))
      writer.close

      assert_equal("out\nerr\n", reader.read)
      assert(Kernel.system({ "NAME" => "value" }, "echo $NAME", out: target, chdir: "/"))
      assert_equal("value\n", File.read(target))
      assert_raises(RuntimeError) { system("exit 3", exception: true) }
      assert_equal(3, $?.exitstatus)
      assert_raises(NoMethodError) { 1.spawn("true") }
      assert_equal("text", IO.popen("cat", "r+", &->(io) { (io.write("text") && io.close_write) || io.read }))
    end
  end
end
