# frozen_string_literal: true

require_relative "internal/native"
require_relative "patches"

# `require "heddle"` loads this; `require "heddle/would_block"` loads it alone, without a scheduler.
#
# Makes the exceptions that say "it would block" cheap: the exceptions of read_nonblock, write_nonblock,
# accept_nonblock, connect_nonblock, recv_nonblock, recvfrom_nonblock, recvmsg_nonblock and sendmsg_nonblock of IO,
# ARGF, all sockets and OpenSSL's. Each is a new object of the same class, with the same message, errno and cause; its
# backtrace is empty. `exception: false`, and the rest of these methods, stay Ruby's own.
module Heddle
  # @!attribute [rw] would_block_backtraces
  #   @!scope class
  #   Do these exceptions have the backtrace that Ruby gives them, at Ruby's price? It is false at first. They always
  #   have it under `ruby --debug` ($DEBUG).
  #   @return [Boolean]

  Patches.load(Patches.all.select { |patch| patch.places.empty? })
end
