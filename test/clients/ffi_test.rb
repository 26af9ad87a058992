# frozen_string_literal: true

require_relative "../test_helper"
require "support/clients"

# The gem ffi keeps the exceptions of callbacks for each thread, so no time slice ends in a callback.
contract "FFI" do
  heddle_only "it is about tasks"
  extend TestSupport::Clients

  client "ffi"

  library = Module.new do
    next unless defined?(FFI)

    extend FFI::Library

    ffi_lib FFI::Library::LIBC
    callback :comparison, %i[pointer pointer], :int
    attach_function :qsort, %i[pointer ulong ulong comparison], :void
  end

  define_method(:library) { library }

  # FFI keeps a thread from its first callback on.
  def before_setup
    sort { 0 } if defined?(FFI)
    super
  end

  def fib(number) = number < 2 ? number : fib(number - 1) + fib(number - 2)

  def sort(&) = library.qsort(FFI::MemoryPointer.new(:int, 30), 30, 4, &)

  # @return [String] the message of the error with which the sort has failed
  def failed(number)
    calls = 0
    sort do
      fib(12)
      (calls += 1) > 30 ? raise(ArgumentError, "of #{number}") : 0
    end
  rescue ArgumentError => e
    e.message
  end

  def test_the_exceptions_of_callbacks
    messages = Heddle.run(backend:, time_slice: 0.001) do
      Heddle.map(0...6) { |number| Array.new(4) { failed(number) } }
    end

    assert_equal(Array.new(6) { |number| ["of #{number}"] * 4 }, messages)
  end

  def test_others_run_behind_a_call
    ran = 0
    Heddle.run(backend:, time_slice: 0.001) do
      task = Heddle.spawn { loop { sleep(0.001) && ran += 1 } }
      before = ran
      sort { fib(12) && 0 }

      assert_equal(before, ran)
      fib(20) until ran > before
      task.cancel
    end
  end
end
