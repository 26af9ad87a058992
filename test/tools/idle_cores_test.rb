# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../../tools/testing/idle_cores"

# How much of the machine bin/test finds idle.
class IdleCoresTest < HeddleTest
  def stat(*ticks) = File.write(@path, "cpu  #{ticks.join(" ")} 0 0\ncpu0 #{ticks.join(" ")} 0 0\n")

  def test_what_was_counted_since_the_last_look
    @path = File.join(tempdir, "stat")
    stat(100, 0, 100, 1000, 0, 0, 0, 0)
    all, some = [4, 2].map { |cores| Tools::IdleCores.new(cores, all: 4, path: @path) }

    assert_nil(all.look, "nothing was counted")
    stat(150, 10, 120, 1060, 40, 10, 5, 5)

    assert_equal([2.0, 0.0], [all.look, some.look])
    stat(150, 10, 120, 1160, 40, 10, 5, 5)

    assert_in_delta(4.0, all.look)
  end

  def test_what_is_not_counted
    assert_nil(Tools::IdleCores.new(2, path: File.join(tempdir, "none")).look)
    File.write(path = File.join(tempdir, "stat"), "intr 12\n")

    assert_nil(Tools::IdleCores.new(2, path: path).look)
  end

  def test_this_machine
    skip("there is no #{Tools::IdleCores::STAT}") unless File.exist?(Tools::IdleCores::STAT)
    idle = Tools::IdleCores.new(Tools.processors)
    sleep(0.1)

    assert_includes(0.0..Tools.processors, idle.look)
  end
end
