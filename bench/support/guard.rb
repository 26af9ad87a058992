# frozen_string_literal: true

require "json"
require "open3"
require "rbconfig"
require "tempfile"
require_relative "child"
require_relative "counts"
require_relative "../rows/guard"

module Bench
  module Guard
    # Counts all rows of the guard on a backend, in a process of its own.
    class Check
      # counts::  row => count => number for an operation
      # missing:: count => why it is not there
      Outcome = Struct.new(:backend, :counts, :missing, keyword_init: true) do
        # @return [Array<Array(String, Symbol)>] the counts that are over their limit
        def over
          counts.flat_map do |row, own|
            own.select { |name, count| count > Guard.most(row, name, backend) }.keys.map { |name| [row, name] }
          end
        end

        def to_h = { backend:, counts:, missing:, over: }

        def to_s
          lines = counts.map { |row, own| "#{row.ljust(12)}#{own.map { |name, count| words(row, name, count) }.join}" }
          lines += missing.map { |name, reason| "#{name} were not counted: #{reason}" }
          ["Ruby #{RUBY_VERSION}, #{backend}:", *lines, verdict].join("\n")
        end

        private

        def words(row, name, count)
          format("  %<name>s %<count>.2f (%<most>.2f)", name:, count:, most: Guard.most(row, name, backend))
        end

        def verdict
          return "All are within their limits." if over.empty?

          rows = over.group_by(&:first).map { |row, own| "#{row} (#{own.map(&:last).join(", ")})" }
          "Over the limit: #{rows.join(", ")}."
        end
      end

      # No gem is needed, and none can change what is counted. The interpreter calls methods that YJIT would not.
      COMMAND = [RbConfig.ruby, "--disable=gems", File.join(ROOT, "guard_child.rb")].freeze
      ENVIRONMENT = Child::CLEAN_ENV.merge("RUBY_YJIT_ENABLE" => "0", "HEDDLE_SAFE" => nil, "HEDDLE_WITHOUT" => nil)
      STRACE = %w[strace -f -qq -s 64 -o].freeze

      # @param backend [String] "uring", "epoll", or "ring": uring with shared system calls
      # @param tries [Integer] how often each row is counted; the smallest number is taken
      # @param preloaded [Array<String>] paths of files that change Heddle
      def initialize(backend, tries: 3, preloaded: [])
        shares = backend == SHARED
        @backend = backend
        @env = ENVIRONMENT.merge("HEDDLE_BACKEND" => shares ? "uring" : backend,
                                 "HEDDLE_CALLS" => shares ? "ring" : "direct")
        @tries = tries
        @command = [*COMMAND, tries.to_s, *preloaded]
      end

      # @return [Outcome]
      # @raise [RuntimeError] when the process fails
      def run
        Tempfile.create("heddle-guard") do |file|
          answer, reason = answer(*STRACE, file.path)
          system_calls = Counts.system_calls(Guard.rows, @tries, file.each_line) if answer
          answer ||= answer().then { |plain, said| plain || raise(said) }
          outcome(answer, system_calls, reason)
        end
      end

      private

      # @return [Array(Hash), Array(nil, String)] the answer of the process, or what it has said in place of one
      def answer(*tracer)
        out, err, status = Open3.capture3(@env, *tracer, *@command)
        status.success? ? [JSON.parse(out)] : [nil, err.strip]
      rescue Errno::ENOENT
        [nil, "there is no #{tracer.first}"]
      end

      def outcome(answer, system_calls, reason)
        counts = answer["counts"].map { |own| own.transform_keys(&:to_sym) }
        counts.zip(system_calls) { |own, number| own[:system_calls] = number } if system_calls
        raise "not #{@backend}: #{answer["backend"]}" unless answer["backend"] == @env["HEDDLE_BACKEND"]

        Outcome.new(backend: @backend, counts: Guard.names.zip(counts).to_h,
                    missing: { system_calls: reason }.compact)
      end
    end
  end
end
