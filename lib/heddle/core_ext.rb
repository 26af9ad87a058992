# frozen_string_literal: true

# Everything that Heddle changes in Ruby's own classes, one small file each. All of it is Ruby's own behaviour where
# no Heddle scheduler runs, and nothing is changed before the first scheduler is made: see core_ext/replace.rb. (The
# order counts for a method that is replaced twice: the later one calls the earlier one.)
require_relative "core_ext/replace"
require_relative "core_ext/service_names"
require_relative "core_ext/fifo_redirection"
require_relative "core_ext/fifo_open" if RUBY_VERSION < "3.4"
require_relative "core_ext/addrinfo_timeout" if RUBY_VERSION >= "4.0"
require_relative "core_ext/block_form_close"
require_relative "core_ext/copy_stream"
require_relative "core_ext/fiber_raise"
require_relative "core_ext/file_lookup"
require_relative "core_ext/file_open"
require_relative "core_ext/file_wait"
require_relative "core_ext/flush" if RUBY_VERSION < "4.0"
require_relative "core_ext/folder"
require_relative "core_ext/fork"
require_relative "core_ext/handle_interrupt"
require_relative "core_ext/io_close"
require_relative "core_ext/joined_write"
require_relative "core_ext/pwrite" if RUBY_VERSION < "4.0"
require_relative "core_ext/reverse_lookup"
require_relative "core_ext/set_scheduler"
require_relative "core_ext/socket_connect" if RUBY_VERSION < "3.4"
require_relative "core_ext/tcp_connect"
require_relative "core_ext/thread_calls"
require_relative "core_ext/timed_sleep"
require_relative "core_ext/timeout"
require_relative "core_ext/whole_file"
Heddle::CoreExt.complete
require_relative "would_block"
