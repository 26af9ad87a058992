# frozen_string_literal: true

require "open3"
require_relative "../test_helper"
require "pty"

# What IO.popen and PTY.open close at the end of their block.
contract "BlockFormClose" do
  heddle_only "Ruby closes it under the thread that waits"

  def waits
    {
      "gets" => ->(io) { io.gets },
      "wait_readable" => ->(io) { io.wait_readable },
      "IO.select" => ->(io) { IO.select([io]) }
    }
  end

  def assert_told(name, job)
    Timeout.timeout(60) { job.failure }

    assert_equal([IOError, "stream closed in another thread"], [job.failure.class, job.failure.message], name)
  end

  def test_popen
    reactor do
      waits.each do |name, wait|
        job = nil
        value = IO.popen("exec sleep 0.1", "r+") do |io|
          job = go { wait.call(io) }
          settle
          :value
        end

        assert_equal([:value, true], [value, $?.success?])
        assert_told(name, job)
      end
    end
  end

  def test_popen_of_a_full_pipe
    reactor do
      job = nil
      IO.popen("exec sleep 0.1", "w") do |io|
        fill(io)
        job = go { io.wait_writable }
        settle
      end

      assert_told("wait_writable", job)
    end
  end

  def test_popen_whose_block_fails_or_is_left
    reactor do
      job = nil
      assert_raises(ZeroDivisionError) do
        IO.popen("exit 3") do |io|
          job = go { io.wait_writable(5) && io.gets }
          raise ZeroDivisionError
        end
      end

      assert_equal(3, $?.exitstatus)
      assert_equal(:left, IO.popen("exit 4") { break :left })
      assert_equal(4, $?.exitstatus)
      refute_nil(job.failure)
    end
  end

  def test_popen_forms
    reactor do
      assert_equal("a\n", IO.popen({ "A" => "a" }, "echo $A", "r", err: %i[child out], &:read))
      assert_equal("b", IO.popen([{ "A" => "b" }, "sh", "-c", "printf $A"], external_encoding: "BINARY", &:read))
      assert_equal("c", IO.popen(%w[printf c], "r", &:read))
      assert_equal("d", IO.popen(%w[printf d], &->(io) { io.read }))
      assert_equal("", IO.popen("cat", "r+") { |io| io.close_write || io.read })
      assert_nil(IO.popen("true") { |io| io.close })
      assert_equal("out", Open3.capture2("printf out").first)
      assert_raises(ArgumentError) { IO.popen }
      assert_raises(Errno::ENOENT) { IO.popen(["/none"]) { flunk } }
      assert_raises(TypeError) { IO.popen(1) { flunk } }
    end
  end

  def test_popen_of_a_fork
    reactor do
      text = IO.popen("-") { |io| io ? io.read : print("child") }

      assert_equal("child", text)
    end
  end

  def test_pty_open
    reactor do
      waits.each do |name, wait|
        job = nil
        value = PTY.open do |master, _|
          job = go { wait.call(master) }
          settle
          :value
        end

        assert_equal(:value, value)
        assert_told(name, job)
      end
      ends = PTY.open

      assert_instance_of(File, ends.last)
      ends.each(&:close)
    end
  end
end

# (PTY is loaded by the test above.)
class BlockFormLoadTest < HeddleTest
  def test_pty_that_is_loaded_before
    assert_ruby("require 'pty'; require 'heddle'; Heddle.run { nil }")
  end

  def test_pty_that_is_loaded_in_between
    assert_ruby("require 'heddle'; require 'pty'; Heddle.run { nil }")
  end

  def test_pty_that_is_loaded_later
    assert_ruby("require 'heddle'; Heddle.run { nil }; require 'pty'")
  end

  private

  def assert_ruby(load)
    script = "#{load}; print PTY.method(:open).source_location.first.end_with?('core_ext/block_form_close.rb')"
    output, status = Open3.capture2e(RbConfig.ruby, *$LOAD_PATH.map { |directory| "-I#{directory}" }, "-e", script)

    assert_predicate(status, :success?, output)
    assert_equal("true", output)
  end
end
