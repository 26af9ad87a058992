# frozen_string_literal: true

# bin/test: takes 15 s, 0.9 of a core

require_relative "../test_helper"
require "support/public_use"

# The server uses nothing of Heddle but its public API, as other gems can.
class PublicApiTest < HeddleTest
  PublicUse = TestSupport::PublicUse

  def test_the_server_uses_the_public_api_alone
    paths = Dir.glob("#{PublicUse::SERVER}**/*.rb", base: ROOT)
    sources = paths.to_h { |path| [path, File.read(File.join(ROOT, path))] }

    assert_operator(sources.size, :>, 40)
    assert_empty(PublicUse.new(sources).found)
  end

  # Each of these uses is found.
  def test_what_is_not_public_is_found
    {
      "Heddle::Clock.now" => "Heddle::Clock is not public", "Heddle::Check::SHOWN" => "Heddle::Check is not public",
      "IdleSet::Poller.create" => "Heddle::IdleSet::Poller is not public",
      "::Heddle::ErrorReport.print(error)" => "Heddle::ErrorReport is not public",
      "using Internal" => "Heddle::Internal is not public", "Dump.text" => "Heddle::Dump is not public",
      "CLI::DeepStacks.environment" => "Heddle::CLI::DeepStacks is not public",
      "Scope.current" => "Heddle::Scope.current is not public", "CLI.start([])" => "Heddle::CLI.start is not public",
      "scope.failure_told" => "#failure_told of Heddle is not public",
      "scope.method(:failure_told)" => "#failure_told of Heddle is not public",
      "task.send(:force)" => "task.send(:force) may reach what is private",
      "Heddle.const_get(:Line)" => "Heddle.const_get(:Line) may reach what is private",
      'require "heddle/internal/clock"' => 'no document names require "heddle/internal/clock"',
      'require_relative "../../../../lib/heddle/scope"' => "../../../../lib/heddle/scope is outside of the gem"
    }.each { |code, reason| assert_includes(found(code), reason) }
  end

  def test_what_is_public_is_not_found
    ["Heddle.run { Heddle.spawn { } }", "Heddle.scope { |scope| scope.spawn { } }", "IdleSet.new.wait(0)",
     "error.is_a?(TaskFailure) && error.suppressed", "raise TimeoutError", "Prometheus::Family.new(**x)",
     "Inner::Clock.now", 'require "heddle"', "::Protocol::Rack::Response.wrap", "socket.send(bytes, 0)",
     'require_relative "../server/http1"'].each { |code| assert_empty(found(code), code) }
  end

  private

  def found(code)
    path = "#{PublicUse::SERVER}heddle/server/sample.rb"
    text = "module Heddle\nclass Server\nclass Sample\nmodule Inner\nmodule Clock\nend\nend\n#{code}\nend\nend\nend\n"
    PublicUse.new({ path => text }).found.map { |line| line.sub(/\A.*?:\d+: /, "") }
  end
end
