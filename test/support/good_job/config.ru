# frozen_string_literal: true

# A web server that also runs the jobs of GoodJob: /WaitJob/3 puts a job into the queue.

require_relative "application"

at_exit { GoodJob.capsule.shutdown } # with the shutdown_timeout of the configuration

run(lambda do |env|
  name, argument = env["PATH_INFO"].delete_prefix("/").split("/", 2)
  name&.constantize&.perform_later(Integer(argument, exception: false) || "/#{argument}")
  [200, {}, [Process.pid.to_s]]
end)
