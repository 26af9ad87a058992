# frozen_string_literal: true

require_relative "../support/c_program"

# The floors for the echo row: the same work without any Ruby, in one bare epoll loop, and in one bare io_uring loop
# with multishot receives, buffers of the ring, and sends that go out together.
{ "c" => "echo_epoll", "c-uring" => "echo_uring" }.each do |peer, program|
  program = Bench::CProgram.new(program)
  Bench.peer(peer, rows: %w[echo], prepare: -> { program.compile },
                   command: ->(*sizes) { [program.path, *sizes.map(&:to_s)] })
end
