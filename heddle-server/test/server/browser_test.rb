# frozen_string_literal: true

# bin/test: takes 12 s, 0.8 of a core

require_relative "../test_helper"
require "digest/sha1"
require "support/rack_server"

# What a real browser makes of Heddle::Server: server-sent events and a WebSocket, over HTTP/2 and TLS where the browser
# wants that. The page tells the server what it has seen.
contract "ServerBrowser" do
  include TestSupport::RackServer

  unless defined?(PAGE)
    PAGE = <<~HTML
      <!DOCTYPE html>
      <script>
        const seen = [];
        const tell = () => { if (seen.length == 4) fetch("/seen", { method: "POST", body: seen.sort().join(" ") }) };
        const events = new EventSource("/events");
        events.onmessage = (event) => {
          seen.push("event:" + event.data);
          if (event.data == "2") events.close();
          tell();
        };
        const socket = new WebSocket(location.href.replace(/^http/, "ws") + "socket");
        socket.onopen = () => socket.send("hello");
        socket.onmessage = (message) => { seen.push("socket:" + message.data); socket.close(); tell(); };
      </script>
    HTML
    BROWSERS = %w[chromium-headless-shell chromium google-chrome].freeze
  end

  def setup
    super
    folders = ENV.fetch("PATH").split(":")
    @browser = BROWSERS.flat_map { |name| folders.map { |folder| File.join(folder, name) } }
      .find { |path| File.executable?(path) }
    skip("no browser is here (Debian's chromium-headless-shell)") unless @browser
    @seen = Thread::Queue.new
    @versions = []
  end

  def app(env)
    @versions << env["SERVER_PROTOCOL"]
    case env["PATH_INFO"]
    when "/" then [200, { "content-type" => "text/html" }, [PAGE]]
    when "/events" then [200, { "content-type" => "text/event-stream" }, method(:send_events)]
    when "/socket" then upgrade(env)
    when "/seen" then @seen.push(env["rack.input"].read) && [204, {}, []]
    else [404, {}, []]
    end
  end

  def send_events(stream)
    3.times do |number|
      stream.write("data: #{number}\n\n")
      sleep(0.02)
    end
    stream.close
  end

  # Sends the first message back that comes (RFC 6455).
  def upgrade(env)
    key = "#{env["HTTP_SEC_WEBSOCKET_KEY"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    io = env["rack.hijack"].call
    io.write("HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n" \
             "sec-websocket-accept: #{[Digest::SHA1.digest(key)].pack("m0")}\r\n\r\n")
    Heddle.spawn do
      size = io.read(2).getbyte(1) & 0x7f
      mask = io.read(4).bytes
      text = io.read(size).bytes.each_with_index.map { |byte, at| byte ^ mask[at % 4] }
      io.write([0x81, size, *text].pack("C*"))
      io.read # until it is closed
    ensure
      io.close
    end
    [200, {}, []]
  end

  # @return [String] what the page has seen
  def visit(url)
    folder = tempdir
    pid = Process.spawn({ "HOME" => folder }, @browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                        "--disable-dev-shm-usage", "--ignore-certificate-errors", "--user-data-dir=#{folder}/profile",
                        "--remote-debugging-port=0", url, %i[out err] => File::NULL, pgroup: true)
    @seen.pop(timeout: 60)
  ensure
    Process.kill(:TERM, -pid)
    Process.wait(pid)
  end

  def test_events_and_a_web_socket
    serve(lint: false) { |env| app(env) }

    assert_equal("event:0 event:1 event:2 socket:hello", visit("http://127.0.0.1:#{@server.port}/"))
    assert_equal(["HTTP/1.1"], @versions.uniq)
    assert_empty(@errors)
  end

  def test_events_over_http2_and_a_web_socket_beside_it
    missing = TestSupport::Clients.load("protocol-http2", "protocol/http2")
    skip(missing) if missing
    serve(bind: tls_address, lint: false) { |env| app(env) }

    assert_equal("event:0 event:1 event:2 socket:hello", visit("https://localhost:#{@server.port}/"))
    assert_equal(%w[HTTP/1.1 HTTP/2], @versions.uniq.sort)
    assert_empty(@errors)
  end
end
