# frozen_string_literal: true

module TestSupport
  # Calls hooks of the current scheduler directly. Ruby 4.1 swaps two arguments of the io_read family, and lets
  # one call make one transfer only: the order is found out here as Ruby's own documentation proposes.
  module Hooks
    OFFSET_FIRST = IO::Buffer.const_defined?(:VERSION) && IO::Buffer::VERSION >= 3

    def scheduler = Fiber.scheduler

    def one_transfer? = OFFSET_FIRST

    %i[io_read io_write].each do |hook|
      define_method(hook) do |io, buffer, length: 0, offset: 0|
        scheduler.public_send(hook, io, buffer, *in_order(length, offset))
      end
    end

    %i[io_pread io_pwrite].each do |hook|
      define_method(hook) do |io, buffer, from, length: 0, offset: 0|
        scheduler.public_send(hook, io, buffer, from, *in_order(length, offset))
      end
    end

    # A buffer that holds the text, or this number of bytes.
    def buffer(content)
      return IO::Buffer.new(content) if content.is_a?(Integer)

      IO::Buffer.new(content.bytesize).tap { |one| one.set_string(content) }
    end

    private

    # A length of 0 means "what there is" up to 4.0; since 4.1 it means nothing.
    def in_order(length, offset)
      if OFFSET_FIRST
        [offset, length.zero? ? 1 << 20 : length]
      else
        [length, offset]
      end
    end
  end
end
