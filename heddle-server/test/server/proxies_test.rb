# frozen_string_literal: true

# bin/test: takes 40 s, 1 core

require_relative "../test_helper"
require "support/counted_requests"
require "support/serve_case"

# Some thousand requests of real clients to `heddle serve`, by itself and behind real proxies: none is lost, none fails.
# bench/proxies.rb makes more of them.
class ServeProxiesTest < HeddleTest
  include TestSupport::ServeCase

  CountedRequests = TestSupport::CountedRequests
  REQUESTS = 1000

  def setup
    super
    missing = TestSupport::Clients.load("protocol-http2", "protocol/http2")
    skip(missing) if missing
  end

  TestSupport::Contract.backends.product(CountedRequests::FRONTS.keys).each do |(backend, reason), front|
    next if backend == TestSupport::Contract::REFERENCE

    define_method("test_#{backend}_behind_#{front.tr(" ", "_")}") do
      skip("backend #{backend}: #{reason}") if reason
      write("config.ru", CountedRequests::APP)

      assert_empty(wrong(front, "--backend", backend).compact)
    end
  end

  def test_a_request_that_fails_is_seen
    write("config.ru", 'run(->(env) { [env["PATH_INFO"].end_with?("/1") ? 500 : 200, {}, [env["PATH_INFO"]]] })')

    assert_predicate(wrong("no proxy"), :all?)
  end

  private

  # @return [Array<String, nil>] for each client what is wrong
  def wrong(front, *)
    clients = CountedRequests.clients(front)
    skip("neither h2load nor curl is here") if clients.empty?
    CountedRequests.behind(front, serve(*CountedRequests.arguments(@dir), *, bind: nil)) do |ports|
      clients.map { |client| CountedRequests.wrong(client, ports, REQUESTS, limit: 120) }
    end
  rescue TestSupport::Servers::Missing => e
    skip(e.message)
  end
end
