# frozen_string_literal: true

# What test/rack/servers_test.rb asks of each server. With APP_PLUGIN the runs come from Puma's plugin.

require "heddle/rack"
require "rack/timeout/base"
require "warden"

# The middleware around the application: it sets and looks at fiber-locals, and answers requests that were timed out.
class Surroundings
  def initialize(app)
    @app = app
  end

  def call(env)
    Thread.current[:from_outside] = env["PATH_INFO"]
    Thread.current[:from_inside] = nil
    status, headers, body = @app.call(env)
    [status, headers.merge("x-inside" => Thread.current[:from_inside].to_s), body]
  rescue Rack::Timeout::Error => e
    [503, { "content-type" => "text/plain" }, [e.class.name]]
  end
end

# Its parts are made by tasks that the body starts.
class Parts
  def initialize(env)
    @closed = -> { env["rack.errors"].puts("body closed") }
  end

  def each
    parts = Thread::Queue.new
    3.times { |number| Heddle.spawn { sleep(0.1 * (3 - number)) && parts.push("part #{number}\n") } }
    3.times { yield(parts.pop) }
  end

  def close = @closed.call
end

APPLICATION = lambda do |env|
  text = { "content-type" => "text/plain" }
  case env["PATH_INFO"]
  when "/fan"
    others = Thread::Queue.new # each waits for the last one
    tasks = Array.new(10) do |number|
      Heddle.spawn do
        sleep(0.1)
        number == 9 ? others.close : others.pop
        number
      end
    end
    [200, text, [tasks.map(&:value).join(",")]]
  when "/waits" # until its end
    answer = []
    Heddle.spawn { sleep(0.1) && answer.push("done") }
    [200, text, answer]
  when "/locals"
    Thread.current[:from_inside] = "inside"
    [200, text, [Thread.current[:from_outside].to_s]]
  when "/parts"
    [200, text, Parts.new(env)]
  when "/stream"
    [200, text, ->(stream) { Heddle.spawn { stream.write("streamed") }.wait && stream.close }]
  when "/partial"
    hijack = ->(socket) { Heddle.spawn { socket.write("hijacked") }.wait && socket.close }
    [200, { **text, "rack.hijack" => hijack }, []]
  when "/hijack"
    socket = env["rack.hijack"].call
    Heddle.spawn { socket.write("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhijacked") }.wait
    socket.close
    [-1, {}, []]
  when "/async" # Puma and Thin know this
    socket = env["rack.hijack"].call
    socket.write("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nthrown")
    socket.close
    throw(:async)
  when "/error"
    Heddle.spawn { raise "of a task" }
    sleep(60)
  when "/private"
    env["warden"].authenticate!
  when "/plain_error"
    raise "of the application"
  when "/private_task"
    Heddle.map(1..3) { env["warden"].authenticate! }
  when "/slow"
    begin
      Heddle.map(1..3) { sleep(60) }
    ensure
      env["rack.errors"].puts("slow ended")
    end
  else
    [404, text, []]
  end
end

use Surroundings
use Rack::Timeout, service_timeout: 2
use Warden::Manager do |warden|
  warden.default_strategies(:nobody)
  warden.failure_app = ->(env) { [401, { "content-type" => "text/plain" }, [env["warden.options"][:action].to_s]] }
end
Warden::Strategies.add(:nobody) { define_method(:authenticate!) { fail!("nobody") } }
use Heddle::Rack::Middleware unless ENV["APP_PLUGIN"]
run APPLICATION
Rack::Timeout::Logger.disable if defined?(Rack::Timeout::Logger)
