# frozen_string_literal: true

# What the tests of Heddle::Middleware run in Puma and Unicorn. Instead of the middleware there may be the plugin of
# Puma, which is outside of all others.
require "rack/timeout/base"
require "warden"

# Unicorn answers nothing when an error reaches it.
use(Class.new do
  def initialize(app) = @app = app

  def call(env)
    @app.call(env)
  rescue StandardError, Rack::Timeout::RequestTimeoutException => e
    [500, { "content-type" => "text/plain" }, ["#{e.class}: #{e.message}"]]
  end
end)
use Rack::Timeout, service_timeout: 1
unless ENV["APP_PLUGIN"]
  require "heddle/middleware"
  use Heddle::Middleware
end
use Warden::Manager do |manager|
  manager.failure_app = ->(_env) { [401, { "content-type" => "text/plain" }, ["who are you?"]] }
end

# How many tasks have waited at the same time.
fan_out = lambda do
  waiting = most = 0
  Heddle.map(1..10) do
    most = [most, waiting += 1].max
    sleep(0.05)
    waiting -= 1
  end
  most
end

run(lambda do |env|
  text = { "content-type" => "text/plain" }
  case env["PATH_INFO"]
  when "/here" then [200, text, [[Heddle.spawn { sleep(0.01) && 7 }.value, fan_out.call].inspect]]
  when "/parts"
    [200, text, Enumerator.new { |parts| 2.times { parts << "#{Heddle.spawn { fan_out.call }.value} " } }]
  when "/stream" then [200, text, ->(stream) { stream.write(Heddle.spawn { fan_out.call }.value.to_s) && stream.close }]
  when "/hijack"
    answer = ->(io) { io.write("#{Heddle.spawn { fan_out.call }.value} hijacked") && io.close }
    [200, text.merge("connection" => "close", "rack.hijack" => answer), []]
  when "/private" then throw :warden
  when "/slow" then Heddle.spawn { sleep(30) }.value
  when "/fails" then Heddle.spawn { raise "as it should" }.value
  else [404, text, []]
  end
end)
