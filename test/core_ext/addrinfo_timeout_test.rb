# frozen_string_literal: true

require_relative "../test_helper"
require "support/fake_resolver"

# A timeout of Addrinfo.getaddrinfo is heeded where Ruby itself would heed it, had it no scheduler. The resolver is a
# preloaded one.
contract "AddrinfoTimeout" do
  include TestSupport::FakeResolver

  def resolve(host, timeout)
    heddle_only("the resolver of its own process")
    skip("Ruby heeds no timeout: before 4.0") unless ruby_at_least?("4.0")
    times = { "dead" => 30_000, "slow" => 60 }
    hosts = times.keys.product([4, 6]).map { |name, family| "#{name} #{family} #{times.fetch(name)} !-3\n" }
    env = fake_hosts("#{hosts.join}known 0 0 127.0.0.1\nknown 4 0 127.0.0.1\nknown 6 0 !-2\n")
    code = <<~RUBY
      started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      said = begin
        Heddle.run { Addrinfo.getaddrinfo(#{host.dump}, 80, nil, :STREAM, timeout: #{timeout}).map(&:ip_address) }
      rescue StandardError => e
        [e.class, e.message]
      end
      print([said, Process.clock_gettime(Process::CLOCK_MONOTONIC) - started < 20].inspect)
    RUBY
    assert_script(code, env: env.merge("HEDDLE_BACKEND" => backend))
  end

  def test_it_ends_the_lookup
    said = '[[IO::TimeoutError, "user specified timeout for dead port 80"], true]'

    assert_equal(said, resolve("dead", 0.1))
  end

  def test_an_answer_in_time
    assert_equal('[["127.0.0.1"], true]', resolve("known", 5))
  end
end
