# frozen_string_literal: true

require_relative "../test_helper"
require "support/certificate"
require "support/io/would_block"

# The exceptions of OpenSSL's *_nonblock methods, whenever that is loaded.
contract "SSLWouldBlockErrors" do
  include TestSupport::WouldBlock

  %i[read_ssl connect_ssl accept_ssl write_ssl].each do |name|
    define_method("test_#{name}_has_no_backtrace") do
      heddle_only("Ruby's have one")

      assert_empty(reactor { would_block(name) }.backtrace)
    end
  end

  [%w[openssl heddle], %w[heddle openssl]].each do |first, second|
    define_method("test_when_#{first}_is_loaded_before_#{second}") do
      heddle_only("one is Heddle")
      code = <<~RUBY
        require "socket"
        begin
          one, _other = UNIXSocket.pair
          OpenSSL::SSL::SSLSocket.new(one).connect_nonblock
        rescue IO::WaitReadable => e
          print(e.message, e.backtrace)
        end
      RUBY
      outcome = run_ruby(code, heddle: false, options: ["-r#{first}", "-r#{second}"])

      assert_equal(["read would block[]", ""], [outcome.out, outcome.err])
    end
  end
end
