# frozen_string_literal: true

require_relative "../test_helper"

# The child of a fork, or of Process.daemon, has no scheduler.
contract "ForkPatch" do
  def test_a_child_has_none
    reactor do
      pid = fork { exit!(Fiber.scheduler.nil? ? 0 : 1) }

      assert_predicate(Process.wait2(pid).last, :success?)
    end
  end

  def test_a_daemon_has_none
    heddle_only("schedulers")
    path = File.join(tempdir, "daemon")

    assert_script(<<~RUBY, env: { "HEDDLE_BACKEND" => backend })
      Heddle.run do
        Process.daemon(true, true)
        File.write("#{path}.part", Fiber.scheduler.inspect)
        File.rename("#{path}.part", "#{path}")
        exit!
      end
    RUBY
    wait_until { File.exist?(path) }

    assert_equal("nil", File.read(path))
  end
end
