# frozen_string_literal: true

require_relative "../test_helper"
require "heddle/cli/doctor/advice"

# What heddle doctor makes of facts that this machine does not have.
class AdviceTest < HeddleTest
  GOOD = {
    wanted: nil, failure: nil, ruby: { version: "3.4.9", yjit: "on" }, kernel: { io_uring_disabled: 0, seccomp: false },
    backends: [{ name: "uring", available: true, reason: nil }],
    limits: { open_files: { soft: 20_000, hard: 20_000 }, locked_memory: { soft: 8 << 20, hard: 8 << 20 }, root: false,
              fibers: 32_000 }
  }.freeze
  NO_URING = { backends: [{ name: "uring", available: false, reason: "not permitted" }] }.freeze

  def advice(**changes)
    Heddle::CLI::Advice.new(GOOD.merge(changes)).to_a
  end

  def limits(**) = { limits: GOOD[:limits].merge(**) }

  def test_none_where_all_is_well
    assert_empty(advice)
  end

  def test_each_shortcoming_has_a_remedy
    {
      "RUBY_YJIT_ENABLE=1" => { ruby: { version: "3.4.9", yjit: "off" } },
      "without YJIT" => { ruby: { version: "3.4.9", yjit: "not built" } },
      "RUBY_MN_THREADS=1" => { ruby: { version: "3.4.9", yjit: "on", mn_threads: true } },
      "too old" => { ruby: { version: "3.3.1", yjit: "on" } },
      "kernel.io_uring_disabled=0" => NO_URING.merge(kernel: { io_uring_disabled: 2, seccomp: false }),
      "seccomp" => NO_URING.merge(kernel: { io_uring_disabled: 0, seccomp: true }),
      "not permitted" => NO_URING,
      "epoll does the same" => NO_URING.merge(backend: "epoll"),
      "epoll cannot be used either; poll does the same" => NO_URING.merge(backend: "poll"),
      "ulimit -l" => limits(locked_memory: { soft: 1 << 14, hard: 1 << 14 }),
      "ulimit -n 20000" => limits(open_files: { soft: 1024, hard: 20_000 }),
      "LimitNOFILE" => limits(open_files: { soft: 4096, hard: 4096 }),
      "vm.max_map_count" => limits(fibers: 1000)
    }.each { |remedy, facts| assert_advised(remedy, advice(**facts)) }
  end

  def assert_advised(remedy, advice)
    assert_equal(1, advice.size, "#{remedy}: #{advice}")
    assert_includes(advice.first, remedy)
  end

  def test_root_may_lock_memory
    assert_empty(advice(**limits(locked_memory: { soft: 1 << 14, hard: 1 << 14 }, root: true)))
  end

  def test_root_may_use_io_uring_where_others_may_not
    uring_for_a_group = NO_URING.merge(kernel: { io_uring_disabled: 1, seccomp: false })

    assert_includes(advice(**uring_for_a_group).first, "sysctl")
    assert_includes(advice(**uring_for_a_group, **limits(root: true)).first, "not permitted")
  end
end
