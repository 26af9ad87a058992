# frozen_string_literal: true

# Net::HTTP against a server that sends the texts of a case, and records what it receives. It prints, for each case,
# what the client got or what was raised, and what went over the wire: the same whether heddle/accelerate/net_http is
# loaded or not. Run by test/accelerate/net_http_test.rb, in processes of its own.
#
#   ruby net_http_cases.rb plain|accelerated threads|uring|epoll SEED

require "json"
require "net/http"
require "socket"
require "zlib"

# The server, of plain threads: answers each request on a connection with the next list of pieces, which are written
# one after the other. Symbols are what it does besides.
class RecordingServer
  attr_reader :port, :heard

  def initialize(answers)
    @answers = answers
    @heard = []
    @server = TCPServer.new("127.0.0.1", 0)
    @port = @server.local_address.ip_port
    @sockets = []
    @threads = [Thread.new { loop { accept } }]
  end

  def close
    @threads.shift.kill.join until @threads.empty?
    [@server, *@sockets].each(&:close)
  end

  private

  def accept
    socket = @server.accept
    @threads << Thread.new { serve(socket) }
  end

  def serve(socket)
    @sockets << socket
    while (answer = @answers.first) && hear(socket)
      @answers.shift
      answer.each { |piece| return socket.close if say(socket, piece) == :closed }
    end
    socket.close
  rescue SystemCallError, IOError
    socket.close
  end

  def hear(socket)
    head = +""
    head << (socket.gets || return) until head.end_with?("\r\n\r\n")
    length = head[/^content-length: (\d+)/i, 1].to_i
    @heard << (head + socket.read(length))
  end

  def say(socket, piece)
    case piece
    when String then socket.write(piece)
    when :pause then sleep(0.02)
    when :hang then sleep # until it is closed
    when :close then :closed
    when :reset
      sleep(0.05)
      socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_LINGER, [1, 0].pack("ii"))
      :closed
    end
  end
end

# What each case is called => what the server says and what the client does.
module Cases
  OK = "HTTP/1.1 200 OK\r\n"
  TEXT = "#{OK}Content-Length: 5\r\n\r\nhello".freeze
  ASCII = ("0123456789abcdef" * 20_000).freeze
  BINARY = Random.new(1).bytes(300_000).freeze
  MIXED = ["a", "\xFF".b, "b"].map { |one| one * 100_000 }.join.freeze

  module_function

  def body(bytes, fields = "") = "#{OK}#{fields}Content-Length: #{bytes.bytesize}\r\n\r\n".b + bytes.b

  def headers
    ["Server: x", "Server:x", "Server : x", "Server:", "Server: ", ":", ": x", "no colon", " leading: x", "A: b\r\n c",
     "A: b\r\n\tc", "A:\r\n b", "A: b\rc", "A: b\0", "\0A: b", "A: b\v", "A: b ", "A: \t b\t ", "A b: c", "A: b: c",
     "A: \xFF\xFE".b, "A: \u00e9".b, "\u00e9: b".b, "Set-Cookie: a\r\nSet-Cookie: b", "a: 1\r\nA: 2\r\nA: 3", "A: b\n",
     "A: b\nC: d", "A: #{"x" * 70_000}", "#{"K" * 2000}: x", "Content-Range: bytes 0-4/10", "Connection: close",
     "Transfer-Encoding: identity", "Content-Encoding: none", "Date: Sun, 22 Nov 2026 21:12:10 GMT"]
  end

  def malformed
    ["", "\r\n", "garbage\r\n\r\n", "HTTP/1.1\r\n\r\n", "HTTP/1.1 20\r\n\r\n", "HTTP/1.1 200\r\n\r\n",
     "HTTP/9.9 200 OK\r\n\r\n", "HTTP 200 OK\r\n\r\n", "http/1.1 200 ok\r\n\r\n", OK, "#{OK}A: b", "#{OK}A: b\r\n",
     "#{OK}A: b\r\nnonsense\r\n\r\n", "#{OK}\n", "#{OK}\r\r\n\r\n", "#{OK} \r\n", "\0" * 50, "#{OK}\0\r\n\r\n",
     "#{OK}Content-Length: abc\r\n\r\nhello", "#{OK}Content-Length: -5\r\n\r\nhello",
     "#{OK}Content-Length: 99999999999999999999999\r\n\r\nhello", "#{OK}Content-Length: 100000\r\n\r\nhello",
     "#{OK}Transfer-Encoding: chunked\r\n\r\nzz\r\n", "#{OK}Transfer-Encoding: chunked\r\n\r\n5\r\nhel",
     "#{OK}Content-Range: bytes 5-3/10\r\n\r\nhello", "#{OK}Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello",
     "HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
     "HTTP/1.1 999 What\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
     "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello",
     "HTTP/1.1 100 Continue\r\n\r\n#{TEXT}", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n#{TEXT}"]
  end

  def get = ->(http) { http.get("/x") }
  def uri(http) = URI("http://127.0.0.1:#{http.port}/x?y")

  def answers
    cases = {}
    headers.each { |text| cases["header #{text.inspect[0, 40]}"] = [[body("hello", "#{text}\r\n")]] }
    malformed.each { |text| cases["malformed #{text.inspect}"] = [[text, :close]] }
    cases["in pieces"] = [TEXT.chars.each_slice(7).flat_map { |some| [some.join, :pause] }]
    cases["chunked"] = [["#{OK}Transfer-Encoding: chunked\r\n\r\n", "5;x=y\r\nhello\r\n", :pause,
                         "3\r\nabc\r\n0\r\nA: b\r\n\r\n"]]
    cases["gzip"] = [[body(Zlib.gzip(ASCII), "Content-Encoding: gzip\r\n")]]
    cases["until the end"] = [["#{OK}\r\n", ASCII, :close]]
    cases["two bodies in one piece"] = [[TEXT + TEXT]]
    { ascii: ASCII, binary: BINARY, mixed: MIXED }.each do |kind, bytes|
      cases["large #{kind}"] = [[body(bytes)]]
      cases["large #{kind} in pieces"] = [body(bytes).scan(/.{1,70000}/mn).flat_map { |some| [some, :pause] }]
      cases["large #{kind}, too short"] = [[body(bytes)[...-5], :close]]
      cases["large #{kind}, reset"] = [[body(bytes)[...-5], :reset]]
      cases["large #{kind}, hangs"] = [[body(bytes)[...-5], :hang]]
    end
    cases.merge!(surpluses)
    cases.to_h { |name, lists| [name, [lists, lists.size > 1 ? twice : get]] }
  end

  # Bytes after the end of a body, which come with its last bytes.
  def surpluses
    surplus = { "an answer" => TEXT, "an empty line" => "\r\n", "a byte" => "x" }
    whole = body(MIXED)
    surplus.to_h do |kind, bytes|
      ["large with #{kind} more", [[whole[...-5], :pause, whole[-5..] + bytes, :close], [TEXT]]]
    end
  end

  # Any answer, with a large body.
  def odd_answers(seed, count)
    random = Random.new(seed)
    fields = ["", "Connection: close\r\n", "Connection: keep-alive\r\n", "Content-Type: text/plain; charset=utf-8\r\n",
              "Content-Encoding: identity\r\n", "X: y\r\n z\r\n", "Transfer-Encoding: identity\r\n"]
    Array.new(count) do |number|
      bytes = [ASCII, BINARY, MIXED].sample(random:)[0, random.rand(1..80_000)]
      size = bytes.bytesize + [0, 0, 0, -3, 5, -20_000].sample(random:)
      text = "#{OK}#{fields.sample(random:)}Content-Length: #{[size, 0].max}\r\n\r\n".b + bytes
      cuts = [*Array.new(random.rand(0..2)) { random.rand(text.bytesize) }, text.bytesize].sort
      parts = [0, *cuts].each_cons(2).flat_map { |from, to| [text[from...to], :pause] }[...-1]
      redo if left_in_kernel?(parts.last.bytesize, bytes.bytesize - size)
      ["odd answer #{seed}/#{number}", [[[*parts, :close], [TEXT]], twice]]
    end.to_h
  end

  # Does plain Net::HTTP, which reads this number of bytes at a time, leave some of the surplus to the kernel? Then it
  # does not see the end of the connection before its next request.
  def left_in_kernel?(last, surplus)
    size = Net::BufferedIO::BUFSIZE
    surplus.between?(1, size) && (last - 1) / size != (last - surplus - 1) / size
  end

  # The second one by a new connection, if the first one is at its end.
  def twice
    lambda do |http|
      bodies = Array.new(2) do |number|
        sleep(0.1) if number == 1
        http.get("/x").body
      rescue StandardError => e
        e.class.name
      end
      bodies.map { |body| text(body) }.inspect
    end
  end

  def clients
    thrice = [[TEXT], [body(BINARY)], [TEXT]]
    post = ->(http) { http.post("/x", "data", "Content-Type" => "text/plain", "X-Odd-name" => "1", "te" => "x") }
    fields = { "connection" => "keep-alive", :symbol => "1", "X-REQUEST-ID" => "2", "lower-case-x" => "3" }
    {
      "three on one connection" => [thrice, ->(http) { Array.new(3) { http.get("/x") }.last }],
      "closed meanwhile" => [[[TEXT, :close], [TEXT]], ->(http) { http.get("/1") && sleep(0.05) && http.get("/2") }],
      "post" => [[[TEXT]], post],
      "put a large one" => [[[TEXT]], ->(http) { http.put("/x", BINARY, "Content-Type" => "text/plain") }],
      "head" => [[["#{OK}Content-Length: 500000\r\n\r\n"]], ->(http) { http.head("/x") }],
      "fields" => [[[TEXT]], ->(http) { http.get("/x", fields) }],
      "a field that is no text" => [[[TEXT]], ->(http) { http.get("/x", "A" => "b\r\nc") }],
      "basic auth" => [[[TEXT]], lambda { |http|
        http.request(Net::HTTP::Get.new("/x").tap { |request| request.basic_auth("a", "b") })
      }],
      "as a stream" => [[[body(BINARY)]], ->(http) { stream(http) }],
      "a stream of ascii" => [[[body(ASCII)]], ->(http) { stream(http) }],
      "into a string" => [[[body(BINARY)]], ->(http) { into(http, +"") }],
      "into a string with something" => [[[body(ASCII)]], ->(http) { into(http, +"before") }],
      "into an array" => [[[body(ASCII)]], ->(http) { into(http, []).join }],
      "into a frozen string" => [[[body(ASCII)]], ->(http) { into(http, "") }],
      "into a string of another encoding" => [[[body(ASCII)]], ->(http) { into(http, +"".encode("UTF-16LE")) }],
      "what is there when it hangs" => [[[body(BINARY)[...-5], :hang]], lambda { |http|
        text = +""
        begin
          into(http, text)
        rescue Net::ReadTimeout
          text
        end
      }],
      "no end is an error" => [[[body(BINARY)[...-5], :close]], lambda { |http|
        http.ignore_eof = false
        http.get("/x")
      }],
      "encodings" => [[[body(ASCII, "Content-Type: text/plain; charset=utf-8\r\n")]], lambda { |http|
        http.response_body_encoding = true
        http.get("/x")
      }],
      "debug output" => [[[TEXT], [TEXT]], lambda { |http|
        http.finish
        http.set_debug_output(text = +"")
        http.start { 2.times { http.get("/x") } }
        text.gsub(/:\d{4,5}/, "")
      }],
      "debug output of a large one" => [[[body(MIXED)]], lambda { |http|
        http.finish
        http.set_debug_output(+"")
        http.start { http.get("/x") }
      }],
      "Net::HTTP.get" => [[["#{OK}Connection: close\r\n\r\n", MIXED, :close]], lambda { |http|
        Net::HTTP.get("127.0.0.1", "/x", http.port)
      }],
      "Net::HTTP.get of a URI" => [[[TEXT]], ->(http) { Net::HTTP.get(uri(http)) }],
      "Net::HTTP.post" => [[[TEXT]], ->(http) { Net::HTTP.post(uri(http), "data", "Content-Type" => "text/plain") }]
    }
  end

  def stream(http)
    whole = +"".b
    http.request_get("/x") { |response| response.read_body { |part| whole << part } }
    whole
  end

  def into(http, dest)
    http.request_get("/x") { |response| response.read_body(dest) }
    dest
  end

  def run(lists, client)
    server = RecordingServer.new(Marshal.load(Marshal.dump(lists)))
    http = Net::HTTP.new("127.0.0.1", server.port)
    http.max_retries = 0
    http.read_timeout = lists.flatten.include?(:hang) ? 0.3 : 60
    [describe(client, http.start), server.heard.map { |text| text.gsub(":#{server.port}", "").b.inspect }]
  ensure
    http.finish if http&.started?
    server&.close
  end

  def describe(client, http)
    begin
      value = client.call(http)
    rescue StandardError => e
      return [e.class, e.message.gsub(/fd \d+, .*?>|127.0.0.1:\d+|0x\h+/, "#")]
    end
    value.is_a?(Net::HTTPResponse) ? response(value) : text(value)
  end

  def response(value)
    [value.class, value.code, value.message, value.http_version, text(value.body), value.ignore_eof,
     value.decode_content, value.each_header.to_a.map { |field| texts(field) },
     value.to_hash.map { |name, values| [text(name), values.frozen?, texts(values)] }]
  end

  def texts(values) = values.map { |one| [text(one), one.frozen?] }

  # The whole of a short one.
  def text(value)
    return value.inspect unless value.is_a?(String)

    [value.bytesize > 500 ? [value.bytesize, Zlib.crc32(value)] : value.b.inspect, value.encoding]
  end
end

if $PROGRAM_NAME == __FILE__
  accelerated, backend = ARGV
  require "heddle"
  require "heddle/accelerate/net_http" if accelerated == "accelerated"
  in_task = backend == "threads" ? ->(&block) { block.call } : ->(&block) { Heddle.run(backend:, &block) }
  cases = Cases.answers.merge(Cases.clients, Cases.odd_answers(ARGV.fetch(2).to_i, 60))
  results = cases.to_h do |name, (lists, client)|
    [name, in_task.call { Cases.run(lists, client) }]
  end
  puts JSON.generate(results)
end
