# frozen_string_literal: true

# Everything that Heddle changes in Ruby's own classes, one small file each. All of it is Ruby's own behaviour where
# no Heddle scheduler runs.
require_relative "core_ext/addrinfo_timeout" if RUBY_VERSION >= "4.0"
require_relative "core_ext/block_form_close"
require_relative "core_ext/copy_stream"
require_relative "core_ext/fiber_raise"
require_relative "core_ext/file_lookup"
require_relative "core_ext/file_open"
require_relative "core_ext/fifo_open" if RUBY_VERSION < "3.4"
require_relative "core_ext/fifo_redirection"
require_relative "core_ext/file_wait"
require_relative "core_ext/fork"
require_relative "core_ext/handle_interrupt"
require_relative "core_ext/io_close"
require_relative "core_ext/joined_write"
require_relative "core_ext/pwrite" if RUBY_VERSION < "4.0"
require_relative "core_ext/reverse_lookup"
require_relative "core_ext/service_names" # (below tcp_connect, which knows them)
require_relative "core_ext/socket_connect" if RUBY_VERSION < "3.4"
require_relative "core_ext/tcp_connect"
require_relative "core_ext/timed_sleep"
require_relative "core_ext/timeout"
require_relative "core_ext/whole_file"
require_relative "would_block"
