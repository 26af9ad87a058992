# frozen_string_literal: true

require_relative "../test_helper"
require "openssl"

# The reads and writes of an SSLSocket count against the turn of their task (what that means is tested in
# contract/fibers/what_never_waits_takes_turns_test.rb), whenever OpenSSL is loaded.
class SSLTurnTest < HeddleTest
  METHODS = %i[sysread sysread_nonblock syswrite syswrite_nonblock].freeze

  [%w[openssl heddle], %w[heddle openssl]].each do |first, second|
    define_method("test_when_#{first}_is_loaded_before_#{second}") do
      code = <<~RUBY
        socket = OpenSSL::SSL::SSLSocket
        print(#{METHODS}.map { |name| socket.private_method_defined?(:"__heddle_\#{name}", false) }.uniq)
        print([socket.public_method_defined?(:sysread), socket.private_method_defined?(:sysread_nonblock)])
      RUBY
      outcome = run_ruby(code, heddle: false, options: ["-r#{first}", "-r#{second}"])

      assert_equal(["[true][true, true]", ""], [outcome.out, outcome.err])
    end
  end

  def test_switched_off
    code = "print(OpenSSL::SSL::SSLSocket.private_method_defined?(:__heddle_sysread))"
    outcome = run_ruby(code, heddle: false, options: %w[-rheddle -ropenssl], env: { "HEDDLE_WITHOUT" => "ssl_turn" })

    assert_equal(["false", ""], [outcome.out, outcome.err])
  end

  def test_arguments_and_errors_are_those_of_openssl
    socket = OpenSSL::SSL::SSLSocket.new(UNIXSocket.pair.first.tap { |io| keep(io) })
    assert_raises(OpenSSL::SSL::SSLError) { socket.sysread(1) }
    assert_raises(ArgumentError) { socket.sysread }
    error = assert_raises(OpenSSL::SSL::SSLError) { socket.read_nonblock(1, exception: false) }

    assert_match(/not started/, error.message)
  end
end
