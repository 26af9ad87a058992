# frozen_string_literal: true

# bin/test: takes 12 s, 0.7 of a core

require_relative "../test_helper"
require "heddle/accelerate/net_http"
require "json"
require "objspace"
require "openssl"
require "stringio"
require "support/certificate"
require "support/http_server"

# heddle/accelerate/net_http: all is as with plain Net::HTTP, whose methods are kept as __heddle_plain_METHOD.
class AccelerateNetHttpTest < HeddleTest
  PARTS = %i[body field_names fields header start].freeze
  CASES = File.expand_path("../support/net_http_cases.rb", __dir__)
  # A String of a subclass.
  OtherString = Class.new(String) { def split(*) = [self] }
  OtherHTTP = Class.new(Net::HTTP) { define_method(:read_timeout=) { |seconds| super(seconds + 1) } }

  def test_all_parts_are_active
    assert_equal(PARTS, Heddle::Accelerate::NetHTTP.active)
    assert_empty(Heddle::Accelerate::NetHTTP.left_out)
  end

  # Answers, good and bad, errors, and what goes over the wire.
  def test_all_is_the_same
    backends = TestSupport::Contract.backends.filter_map { |name, missing| name unless missing || name == "threads" }

    assert_all_the_same(%w[plain threads], %w[accelerated threads], *backends.map { |name| ["accelerated", name] })
  end

  # There may be a newer one among the gems.
  def test_all_is_the_same_with_the_net_http_of_this_ruby
    options = %w[--disable-gems -rrbconfig] # (Ruby 3.4's resolv needs that)

    assert_all_the_same(["plain", "threads", *options], ["accelerated", "threads", *options])
    output = assert_script(<<~RUBY, heddle: false, options:)
      require "heddle/accelerate/net_http"
      p Heddle::Accelerate::NetHTTP.active, Heddle::Accelerate::NetHTTP.left_out
    RUBY

    assert_equal("#{PARTS}\n{}\n", output)
  end

  # What the bytes of a header are read as, and what is left behind them.
  def test_any_header
    random = Random.new(Minitest.seed)
    parts = ["a", "B", "Name", ":", ": ", " ", "\t", "\r", "\n", "\r\n", "\r\n", "\0", "\v", "\xE9".b, "value", ","]
    2000.times do
      text = Array.new(random.rand(1..30)) { parts.sample(random:) }.join.b + ["\r\n\r\n", "\n\n", ""].sample(random:)

      assert_as_plain(:each_response_header, text) { |method| read_header(method, text) }
    end
  end

  # A header is taken at once when it is there: that is the point.
  def test_the_fast_way_is_taken
    buffer = Net::BufferedIO.new(StringIO.new("HTTP/1.1 200 OK\r\nA: b\r\nC:d\r\n\r\nrest"))
    buffer.readline

    assert_equal(%w[A b C d], buffer.heddle_fields)
    assert_equal("rest", buffer.read_all)
  end

  def test_any_field
    names = ["A", :a, "a-b", "\u00e9", "\xFF", "b".encode("UTF-16LE"), "", "a:b", "a\n", "a" * 1025, nil, 1,
             OtherString.new("Sub")]
    values = ["b", "b\r\nc", "b\n", "\u00e9", "\xFF", "\xFF\n", "b".b, "b\n".encode("UTF-16LE"), "", "b" * 70_000,
              nil, 1, %w[b c], [["b"], "c\n"], { "b" => "c" }, OtherString.new("Sub")]

    names.product(values) do |name, value|
      assert_as_plain(:add_field, [name, value]) { |method| add_twice(method, name, value) }
    end
  end

  def test_any_field_name
    ["accept", "accept-encoding", "x-odd--name", "ACCEPT", "", "-", "te", "host".b, "host".encode("UTF-16LE"), :accept,
     nil, 1, "\u00e9", "\xFF", OtherString.new("accept")].each do |name|
      assert_as_plain(:capitalize, name) do |method|
        Net::HTTP::Get.new("/").__send__(method, name).then { |text| [text, text.encoding, text.frozen?] }
      end
    end
  end

  def test_any_options
    port = keep(TestSupport::HttpServer.new).port
    options = [{}, { use_ssl: false }, { use_ssl: nil }, { read_timeout: 3, open_timeout: 4, max_retries: 0 },
               { ipaddr: "127.0.0.1" }, { keep_alive_timeout: 9, unknown: 1 }, { "read_timeout" => 3 },
               { max_retries: -1 }, { use_ssl: false, verify_mode: 0, ca_file: "x", proxy_use_ssl: true },
               { "": 1 }, { address: "x" }, { "use_ssl" => 1 }]
    arguments = options.flat_map { |one| [[port, one], [port, nil, nil, one]] } + [[port], [port, nil], [{ port: }]]

    [Net::HTTP, OtherHTTP].product(arguments) do |owner, some|
      assert_as_plain(:start, some) { |method| owner.__send__(method, "127.0.0.1", *some) { |http| state_of(http) } }
    end
    assert_as_plain(:start, []) { |method| Net::HTTP.__send__(method) }
  end

  def test_tls
    port = keep(TestSupport::HttpServer.new(tls: true)).port
    options = { use_ssl: true, cert_store: TestSupport::Certificate.client_context.cert_store }

    [options, options.merge(verify_mode: OpenSSL::SSL::VERIFY_NONE), { use_ssl: true }].each do |one|
      assert_as_plain(:start, one) do |method|
        Net::HTTP.__send__(method, "127.0.0.1", port, one) { |http| [http.get("/").body, http.verify_mode] }
      end
    end
  end

  # A method that is defined later is heeded.
  def test_a_patch_that_comes_later
    output = assert_script(<<~RUBY, heddle: false)
      require "heddle/accelerate/net_http"
      module Net::HTTPHeader
        alias old_capitalize capitalize
        def capitalize(name) = name == "accept" ? "ACCEPT" : old_capitalize(name)
        alias old_add_field add_field
        def add_field(name, value) = old_add_field(name, value + "!")
      end
      Net::HTTPHeader.prepend(Module.new { def add_field(name, value) = super(name, value + "?") })
      get = Net::HTTP::Get.new("/", "accept-encoding" => "x")
      get.add_field("b", "c")
      puts(get.each_capitalized.map { |name, value| name + "=" + value })
    RUBY

    assert_equal("Accept-Encoding=x\nACCEPT=*/*\nUser-Agent=Ruby\nB=c?!\n", output)
  end

  # A method that is not the known one: of somebody else, or of another version.
  def test_a_part_is_left_out
    output = assert_script(<<~RUBY, heddle: false, gems: true)
      require "net/http"
      module Net::HTTPHeader
        alias old_capitalize capitalize
        def capitalize(name) = name
      end
      Net::BufferedIO.prepend(Module.new { def read(...) = super })
      require "heddle/accelerate/net_http"
      p Heddle::Accelerate::NetHTTP.active
      puts Heddle::Accelerate::NetHTTP.left_out.to_a.flatten
      puts Net::HTTP::Get.new("/").each_capitalized.first.first
    RUBY

    assert_equal(<<~TEXT, output)
      [:fields, :header, :start]
      body
      not the method that is known: Net::BufferedIO#read
      field_names
      not the method that is known: Net::HTTPHeader#capitalize
      accept-encoding
    TEXT
  end

  # The adapter, which closes the connection of a request that has been cancelled, loaded before or after.
  def test_with_the_adapter
    port = keep(TestSupport::HttpServer.new).port
    in_both_orders("heddle/adapters/net_http", "heddle/accelerate/net_http") do |requires|
      output = assert_script(<<~RUBY, port.to_s, heddle: false)
        #{requires}
        Heddle.run do
          Net::HTTP.start("127.0.0.1", ARGV[0].to_i) do |http|
            Heddle.timeout(0.1) { http.get("/sleep/50") } rescue print($!.class, " ")
            puts http.get("/").body
          end
        end
      RUBY

      assert_equal("Heddle::TimeoutError GET 1 0\n", output)
    end
  end

  # webmock takes the place of Net::HTTP, before or after.
  def test_with_webmock
    skip("webmock is not installed") if Gem::Specification.find_all_by_name("webmock").empty?
    port = keep(TestSupport::HttpServer.new).port
    in_both_orders("webmock", "heddle/accelerate/net_http") do |requires|
      output = assert_script(<<~RUBY, port.to_s, heddle: false, gems: true, options: ["-W0"])
        #{requires}
        WebMock.enable!
        WebMock.stub_request(:get, "http://stubbed.test/").to_return(body: "x" * 50_000, headers: { "A" => "b" })
        response = Net::HTTP.get_response(URI("http://stubbed.test/"))
        puts response.body.size, response["A"]
        WebMock.disable!
        puts Net::HTTP.get("127.0.0.1", "/", ARGV[0].to_i)
      RUBY

      assert_equal("50000\nb\nGET 1 0\n", output)
    end
  end

  # A body that is promised to be long takes memory as it comes.
  def test_a_promise_takes_no_memory
    server = keep(TCPServer.new("127.0.0.1", 0))
    answer = Thread.new do
      socket = server.accept
      socket.readpartial(1000)
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 4000000000000000000\r\n\r\n#{"x" * 300_000}")
      socket.close
    end
    body = Net::HTTP.get("127.0.0.1", "/", server.local_address.ip_port)
    answer.join

    assert_equal(300_000, body.bytesize)
    assert_operator(ObjectSpace.memsize_of(body), :<, 2_000_000)
  end

  def test_in_a_ractor
    skip("Net::HTTP itself needs the main Ractor on this Ruby") unless Ractor.method_defined?(:value)
    port = keep(TestSupport::HttpServer.new).port
    output = assert_script(<<~RUBY, port.to_s, heddle: false, options: ["-W:no-experimental"])
      require "heddle/accelerate/net_http"
      puts Ractor.new(ARGV[0].to_i) { |port| Net::HTTP.new("127.0.0.1", port, nil).get("/").body }.value
      p Ractor.new { Heddle::Accelerate::NetHTTP.active.size }.value
    RUBY

    assert_equal("GET 1 0\n5\n", output)
  end

  private

  def assert_all_the_same(*kinds)
    plain, *others = kinds.map { |kind| Thread.new { run_cases(*kind) } }.map(&:value)

    assert_operator(plain.size, :>, 100)
    assert_operator(plain.values.count { |(kind, *), _| kind == "Net::HTTPOK" }, :>, 50) # (not what the test did wrong)
    plain.each { |name, result| others.each { |one| assert_equal(result, one[name], name) } }
  end

  def run_cases(kind, backend, *options)
    outcome = run_command(*ruby_command, *options, CASES, kind, backend, Minitest.seed.to_s)

    assert_equal(["", true], [outcome.err, outcome.success?])
    JSON.parse(outcome.out)
  end

  # The block returns or raises the same when it calls the method as with the method that was replaced.
  def assert_as_plain(method, message)
    fast, plain = [method, :"__heddle_plain_#{method}"].map do |name|
      yield(name)
    rescue StandardError => e
      [e.class, e.message.gsub(name.name, "the method")]
    end

    assert_equal(plain, fast, message.inspect)
  end

  # The part of it that was read, the error that was raised, and the rest.
  def read_header(method, text)
    buffer = Net::BufferedIO.new(StringIO.new("#{text}the rest\r\n\n"))
    buffer.readline if text.start_with?("B")
    fields = []
    error = begin
      Net::HTTPResponse.__send__(method, buffer) { |*field| fields << [field, field.map(&:encoding)] }
      nil
    rescue Net::HTTPBadResponse => e
      e.message
    end
    [fields, error, buffer.read_all]
  end

  def add_twice(method, name, value)
    header = Net::HTTP::Get.new("/")
    added = Array.new(2) { header.__send__(method, name, value) }
    [added, header.to_hash.map { |one, all| [one, one.encoding, all.map { |text| [text, text.encoding, text.class] }] }]
  end

  def state_of(http)
    http.get("/")
    http.instance_variables.grep_v(/@socket|@last_communicated/).to_h { |one| [one, http.instance_variable_get(one)] }
  end

  def in_both_orders(*files)
    [files, files.reverse].each { |order| yield(order.map { |file| "require #{file.inspect}" }.join("\n")) }
  end
end
