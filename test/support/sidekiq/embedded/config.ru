# frozen_string_literal: true

# A web server that also runs the jobs: /0.1,7 puts a job into the queue.

require_relative "../application"

engine = Sidekiq.configure_embed do |config|
  config.logger = Logger.new($stderr)
  config.concurrency = 20
  config[:timeout] = 3
end
engine.run
at_exit { engine.stop }

run(lambda do |env|
  seconds, number = env["PATH_INFO"].delete_prefix("/").split(",")
  Wait.perform_async(Float(seconds), Integer(number))
  [200, {}, ["{}"]]
end)
