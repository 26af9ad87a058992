# frozen_string_literal: true

require_relative "../test_helper"
require "net/http"
require "support/examples"
require "support/site"

contract "ReverseProxyExample" do
  include TestSupport::Examples

  def setup
    super
    @sites = []
  end

  def teardown
    @sites&.each(&:close)
    super
  end

  def site(&) = TestSupport::Site.new(&).tap { |site| @sites << site }

  def start(*servers)
    @program = start_example("reverse_proxy", 0, *servers)
    @port = Integer(heard(@program, %r{http://127\.0\.0\.1:(\d+)/})[1])
  end

  def url(path = "/") = URI("http://127.0.0.1:#{@port}#{path}")

  def test_each_server_has_its_turn
    names = %w[one two three]
    start(*names.map { |name| "127.0.0.1:#{site { name }.port}" })
    answers = Array.new(6) { Net::HTTP.get(url) }

    assert_equal({ "one" => 2, "two" => 2, "three" => 2 }, answers.tally)
  end

  def test_passes_over_a_server_that_is_down
    start("127.0.0.1:1", "127.0.0.1:#{site { "up" }.port}", "127.0.0.1:1")

    assert_equal(%w[up up up], Array.new(3) { Net::HTTP.get(url) })
  end

  def test_hands_on_heads_and_bodies
    start("127.0.0.1:#{site { |request| [201, request.body.reverse, "X-Kind: new"] }.port}")
    body = Random.bytes(3_000_000)
    answer = Net::HTTP.post(url("/things?x=1"), body,
                            "X-Forwarded-For" => "1.2.3.4", "X-Token" => "abc", "Content-Type" => "application/x-any")

    assert_equal(["201", "new", body.reverse], [answer.code, answer["x-kind"], answer.body])
    request = @sites[0].requests.first

    assert_equal("/things?x=1", request.path)
    assert_equal(["127.0.0.1"], request.head.scan(/^X-Forwarded-For: (.*)\r$/).flatten)
    assert_match(/^X-Token: abc\r$/i, request.head)
    assert_match(/^Connection: close\r$/, request.head)
  end

  def test_many_at_the_same_time
    arrived = Thread::Queue.new
    all_there = Thread::Queue.new
    start("127.0.0.1:#{site { (arrived << true) && all_there.pop.to_s }.port}")
    threads = Array.new(40) { Thread.new { Net::HTTP.get_response(url).code } }
    40.times { arrived.pop }
    all_there.close

    assert_equal(["200"], threads.map(&:value).uniq)
  end

  def test_no_server_and_one_without_an_answer
    start("127.0.0.1:1")

    assert_equal("502", Net::HTTP.get_response(url).code)
    @program.kill
    mute = keep(TCPServer.new("127.0.0.1", 0))
    closing = Thread.new { mute.accept.close }
    start("127.0.0.1:#{mute.addr[1]}")

    assert_equal("502", Net::HTTP.get_response(url).code)
    closing.join
  end

  def test_ctrl_c
    start("127.0.0.1:1")
    @program.signal(:INT)

    assert_predicate(ended(@program), :success?)
    assert_includes(@program.err, "ended by Ctrl-C\n")
  end
end
