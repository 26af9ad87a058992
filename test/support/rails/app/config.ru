# frozen_string_literal: true

require_relative "application"

# For a test in which Puma does not end: what its threads do.
Signal.trap("ALRM") do
  $stderr.write(Thread.list.flat_map { |thread| ["", thread.inspect, *thread.backtrace] }.join("\n"))
end

run Rails.application
