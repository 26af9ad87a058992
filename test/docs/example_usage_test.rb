# frozen_string_literal: true

# bin/test: takes 4 s, 1.5 of a core

require_relative "../test_helper"
require "support/clients"
require "support/examples"

# What all programs of examples/ do with --help, and with what they do not understand.
contract "UsageOfExamples" do
  include TestSupport::Examples

  once def test_help
    programs { |name| start_example(name, "--help") }.each do |name, program|
      assert_equal(["", 0], [program.err, ended(program).exitstatus], name)
      assert_match(/\Ausage: ruby #{name}\.rb /, program.out)
    end
  end

  once def test_what_they_do_not_understand
    programs { |name| [["--weave"], *wrong.fetch(name)].map { |arguments| start_example(name, *arguments) } }
      .each do |name, started|
        started.each do |program|
          assert_equal(["", 1], [program.out, ended(program).exitstatus], program.err)
          assert_match(/\A[^\n]+\nusage: ruby #{name}\.rb [^\n]*\n\z/, program.err)
        end
      end
  end

  private

  def wrong
    { "chat" => [%w[x], %w[-1]], "crawl" => [%w[x], %w[http://a b], ["http:// a"]], "first_answer" => [%w[--seconds x]],
      "health_checks" => [%w[--every 0], %w[--timeout x]], "import_csv" => [[]], "reverse_proxy" => [%w[x]],
      "run_commands" => [%w[-j 0], %w[-j x]], "server_sent_events" => [%w[x], %w[0 0], %w[0 x]],
      "wait_for" => [%w[--seconds x]], "web_socket" => [%w[x], %w[-1]], "with_threads" => [] }
  end

  def programs(&)
    names = Dir.children(TestSupport::Examples::FOLDER).grep(/\.rb\z/).map { |file| file.delete_suffix(".rb") }
    names.delete("import_csv") if TestSupport::Clients.load("pg")
    names.delete("web_socket") if TestSupport::Clients.load("websocket-driver", "websocket/driver")
    names.sort.to_h { |name| [name, yield(name)] }
  end
end
