# frozen_string_literal: true

# Itsi's configuration in bench/web_servers.rb. By default it refuses requests beyond 30 that wait for a thread.
workers 1
threads 1
fiber_scheduler true
ruby_thread_request_backlog_size 100_000
rackup_file ENV.fetch("BENCH_APPLICATION"), script_name: "/"
