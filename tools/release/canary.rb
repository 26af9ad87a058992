# frozen_string_literal: true

require_relative "../console"
require_relative "../setup/extension"
require_relative "../rubies/rubies"
require_relative "../testing/test_selection"

module Tools
  # Tells early whether a new Ruby breaks Heddle: builds it for that Ruby, asks `heddle doctor` which places in Ruby's
  # structs were found, and runs the core's tests, with these places and without.
  class Canary
    # The patches that depend on a place in a struct of Ruby. On a released Ruby each must be active.
    PLACES = %w[callers_fiber match_apart warm_stacks].freeze
    RUNS = { "with the places that were found" => {}, "with HEDDLE_SAFE=1" => { "HEDDLE_SAFE" => "1" } }.freeze

    # @param ruby [String] a path
    # @param tests [Array<String>] files and folders
    def initialize(ruby, tests: CORE, console: Console.new)
      @info = Rubies.named(ruby)
      @tests = tests
      @console = console
    end

    CORE = %w[test/contract test/core_ext test/hooks test/faults test/fuzz test/ractors_test.rb].freeze

    # @return [Boolean]
    def run
      @console.say("the canary sings on #{@info}")
      Extension.new(@info, console: @console).build
      lost = lost_places(doctor)
      lost.each { |name| @console.say("not active on this Ruby: #{name} (guides/patches.md)") }
      failed = RUNS.reject { |_, environment| tests_pass?(environment) }.keys
      failed.each { |title| @console.say("tests failed #{title}") }
      lost.empty? && failed.empty?
    end

    # @param facts [Hash] of `heddle doctor --json`
    # @return [Array<String>] the names of the patches whose place in a struct was not found
    def lost_places(facts)
      patches = facts.fetch("patches")
      PLACES - patches.fetch("active", []) - patches.fetch("not_needed", [])
    end

    private

    def doctor
      text = Command.output(@info.exe, "-I", File.join(ROOT, "lib"), File.join(ROOT, "exe/heddle"), "doctor", "--json",
                            env: { "HEDDLE_SAFE" => nil })
      raise Problem, "heddle doctor fails on #{@info}" unless text

      require "json"
      JSON.parse(text)
    end

    def tests_pass?(environment) = system(environment, "bin/test", "--ruby", @info.exe, *@tests, chdir: ROOT)
  end
end
