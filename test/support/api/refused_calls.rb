# frozen_string_literal: true

# Runs a command where the kernel refuses system calls: ruby refused_calls.rb PROFILE COMMAND ARGUMENT ...
#
# io_uring   as in a container whose seccomp profile forbids io_uring
# new        as in a sandbox that knows no system call of Linux 4.6 and later (gVisor, an old seccomp profile)
require_relative "../seccomp"

case profile = ARGV.shift
when "io_uring" then Seccomp.refuse(*Seccomp::IO_URING)
when "new" then Seccomp.refuse(*Seccomp::RECENT, from: Seccomp::FIRST_NEW, error: Errno::ENOSYS)
else abort("no such profile: #{profile}")
end
exec(*ARGV)
