# frozen_string_literal: true

# bin/test: takes 12 s, 0.7 of a core

require_relative "../test_helper"
require "json"
require "support/serve_case"

# What libraries keep by thread, under `heddle serve`, whose requests share a thread.
class RailsServeTest < HeddleTest
  include TestSupport::ServeCase

  def setup
    super
    skip("activesupport is not installed") if Gem::Specification.find_all_by_name("activesupport", "~> 8.0").empty?
  end

  # It is the application that asks for nothing: by thread is Rails' default.
  CURRENT = <<~RUBY
    gem("activesupport", "~> 8.0")
    require "active_support/all"
    class Current < ActiveSupport::CurrentAttributes
      attribute :user
    end
    run(lambda do |env|
      Current.user = env["QUERY_STRING"]
      File.write(Current.user, "")
      sleep(0.01) until File.exist?("ann") && File.exist?("bob")
      [200, {}, [Current.user]]
    end)
  RUBY

  def test_requests_do_not_share_current_attributes
    write("config.ru", CURRENT)
    [[0], [1], [1, "--preload"]].each do |count, *arguments|
      program = serve_in(count, *arguments)
      users = %w[ann bob].map { |user| Thread.new { program.get("/?#{user}").body } }.map(&:value)

      assert_equal(%w[ann bob], users)
      assert_equal(1, program.said.grep(/config.active_support.isolation_level was :thread; it is :fiber now/).size)
      assert_ends(program)
      %w[ann bob].each { |name| File.unlink(path(name)) }
    end
  end

  def test_nothing_is_said_of_an_application_that_is_isolated_by_fiber
    write("config.ru", CURRENT.sub("class", "ActiveSupport::IsolatedExecutionState.isolation_level = :fiber\nclass"))
    program = serve
    users = %w[ann bob].map { |user| Thread.new { program.get("/?#{user}").body } }.map(&:value)

    assert_equal(%w[ann bob], users)
    assert_empty(program.said.grep(/isolation_level/))
  end

  def test_thread_variables_are_named_once
    write("config.ru", <<~RUBY)
      Thread.current.thread_variable_set(:at_boot, 1)
      run ->(_env) { Thread.current.thread_variable_set(:in_request, 1) && [200, {}, ["one"]] }
    RUBY
    program = serve("--worker-timeout", "0.4")
    program.wait_for(/the thread variable :at_boot is shared by all requests/)
    2.times { program.get && program.wait_for(/the thread variable :in_request is shared by all requests/) }
    sleep(0.5)

    assert_equal(2, program.said.grep(/thread variable/).size, program.said.join)
  end

  def test_thread_variables_of_bundler_are_not_named
    write("config.ru", <<~RUBY)
      %i[logger_level_320 level].each { |name| Thread.current.thread_variable_set(name, 1) }
      run ->(_env) { [200, {}, ["one"]] }
    RUBY
    program = serve
    program.wait_for(/thread variable :level is/)

    assert_equal(1, program.said.grep(/thread variable/).size, program.said.join)
  end

  # As sentry-ruby and Sequel answer.
  def test_libraries_that_keep_a_state_by_thread_are_named_at_boot
    write("config.ru", <<~RUBY)
      module Sentry
        def self.initialized? = true
        def self.configuration = Struct.new(:hub_isolation_level).new(:thread)
      end
      module Sequel
        def self.current = Thread.current
      end
      #{APP}
    RUBY
    program = serve

    assert_said(program, /sentry-ruby .*config.hub_isolation_level = :fiber/)
    assert_said(program, /Sequel .*Sequel.extension :fiber_concurrency/)
  end

  # Templates in templates, trees that are serialized.
  def test_calls_may_nest_as_deep_as_in_a_thread
    write("config.ru", <<~RUBY)
      def depth
        deepest = 0
        nest = ->(level) { deepest = level; [1].each { nest.(level + 1) } }
        nest.(0)
      rescue SystemStackError
        deepest
      end
      run ->(_env) { [200, {}, ["\#{depth} \#{Thread.new { depth }.value}"]] }
    RUBY
    program = serve
    in_request, in_thread = program.get.body.split.map { |text| Integer(text) }

    assert_operator(in_request, :>, in_thread * 0.8)
    assert_operator(in_request, :>, 1000)
  end
end
