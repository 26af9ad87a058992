# frozen_string_literal: true

# Runs a command as in a container whose seccomp profile forbids io_uring: ruby without_io_uring.rb COMMAND ARGUMENT ...
require_relative "seccomp"

Seccomp.refuse(*Seccomp::IO_URING)
exec(*ARGV)
