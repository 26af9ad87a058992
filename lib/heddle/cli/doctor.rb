# frozen_string_literal: true

require_relative "../cli"
require_relative "doctor/advice"
require_relative "doctor/facts"

module Heddle
  module CLI
    # `heddle doctor`
    #
    # @private
    class Doctor
      HELP = <<~TEXT
        usage: heddle doctor [--json]

        Shows what Heddle can use on this machine: the backend (io_uring, epoll, kqueue, poll) and why it was chosen,
        what the kernel and Ruby offer, which patches are active, which limits apply, and what you should change.
        --json prints the same as one line of JSON. The exit status is 0 if Heddle can run here, and 1 if it cannot.
      TEXT

      # @param args [Array<String>]
      # @return [Integer, :help] the exit status
      def call(args)
        return :help if args.intersect?(%w[-h --help])

        wrong = args.find { |arg| arg != "--json" }
        raise UsageError, "heddle doctor: unexpected argument: #{wrong}" if wrong

        facts = Facts.new.to_h
        facts[:advice] = Advice.new(facts).to_a
        args.include?("--json") ? print_json(facts) : print_text(facts)
        facts[:failure] ? 1 : 0
      end

      # @return [String]
      def help = HELP

      private

      def print_json(facts)
        require "json"
        puts(JSON.generate(facts))
      end

      def print_text(facts)
        puts([*ruby(facts), *backends(facts), *calls(facts[:calls]), *kernel(facts[:kernel]), *hooks(facts[:hooks]),
              *patches(facts[:patches]), *net_http(facts[:net_http]), *limits(facts[:limits]),
              *advice(facts[:advice])])
      end

      def ruby(facts)
        ruby = facts[:ruby]
        ["Heddle     #{facts[:heddle]}",
         "Ruby       #{ruby[:description]}",
         "           YJIT #{ruby[:yjit]}, M:N threads #{ruby[:mn_threads] ? "on" : "off"}",
         "           time slices #{ruby[:time_slices] || "work"}"]
      end

      def backends(facts)
        wanted = facts[:wanted] ? " (HEDDLE_BACKEND=#{facts[:wanted]})" : ""
        lines = ["Backend    #{facts[:backend] || "none: #{facts[:failure]}"}#{wanted}"]
        lines + facts[:backends].map do |backend|
          "           #{backend[:name]}: #{backend[:available] ? "available" : "not available: #{backend[:reason]}"}"
        end
      end

      def calls(calls)
        return [] unless calls

        wanted = calls[:wanted] ? " (HEDDLE_CALLS=#{calls[:wanted]})" : ""
        way = calls[:shared] ? "small reads and writes share them" : "each read and write makes its own"
        ["Calls      a system call takes #{calls[:nanoseconds]} ns: #{way}#{wanted}"]
      end

      def kernel(kernel)
        lines = ["Kernel     #{kernel[:name]} #{kernel[:release]}, #{kernel[:cores]} cores"]
        lines << "           a seccomp filter forbids some system calls" if kernel[:seccomp]
        lines + kernel[:features].map do |name, there|
          since, use = Facts::KERNEL_FEATURES.fetch(name)
          "           #{there ? "+" : "-"} #{name}: #{use} (Linux #{since})"
        end
      end

      def hooks(hooks)
        offered, later = hooks.partition { |hook| hook[:offered] }
        lacking = offered.reject { |hook| hook[:defined] }
        lines = ["Hooks      this Ruby calls #{offered.size}, Heddle serves #{offered.size - lacking.size} of them"]
        lines << "           not served: #{names(lacking)}" if lacking.any?
        lines + later.group_by { |hook| hook[:since] }.map { |since, some| "           since #{since}: #{names(some)}" }
      end

      def patches(patches)
        return [] if patches.empty?

        titles = { switched_off: "switched off by HEDDLE_WITHOUT or HEDDLE_SAFE", not_needed: "not needed by this Ruby",
                   not_possible: "not possible with this Ruby" }
        lines = ["Patches    #{patches[:active].size} active (guides/patches.md says what each is for)"]
        lines += titles.slice(*patches.keys).map { |state, title| "           #{title}: #{patches[state].join(", ")}" }
        lines + fallbacks(patches[:active])
      end

      # Describes the patches that depend on places in Ruby's structs.
      def fallbacks(active)
        { callers_fiber: ["Heddle.run    its block runs in the fiber of its caller",
                          "Heddle.run    its block is a task: it has a task's stack, does not own the locks of its " \
                          "caller, and break cannot leave it"],
          match_apart: ["$~ and $_     each task has its own", "$~ and $_     tasks share them"],
          warm_stacks: ["Stacks        the memory of ended tasks is kept for a few seconds",
                        "Stacks        Ruby gives the memory of each ended task back, so starting one takes longer"] }
          .map { |name, (with, without)| "           #{active.include?(name) ? with : without}" }
      end

      def net_http(net_http)
        return [] unless net_http

        active, left_out = net_http.values_at(:active, :left_out)
        lines = ["Net::HTTP  #{net_http[:version]}: heddle/accelerate/net_http makes #{active.size} of " \
                 "#{active.size + left_out.size} parts faster"]
        lines + left_out.map { |name, reason| "           not #{name}: #{reason}" }
      end

      def names(hooks)
        hooks.map { |hook| hook[:name] }.join(", ")
      end

      def limits(limits)
        files, memory = limits.values_at(:open_files, :locked_memory)
        lines = ["Limits     open files #{files[:soft]}, at most #{files[:hard]}; serve, demo and doctor raise it to " \
                 "#{limits[:open_files_raised_to]}",
                 "           locked memory #{size(memory[:soft])}#{" (no limit for root)" if limits[:root]}",
                 "           stack for Ruby calls: #{size(limits[:fiber_stack])} in a task (RUBY_FIBER_VM_STACK_SIZE)" \
                 ", #{size(limits[:thread_stack])} in a thread"]
        return lines unless limits[:fibers]

        lines << "           vm.max_map_count #{limits[:max_map_count]}: about #{limits[:fibers]} fibers at once"
      end

      def size(bytes)
        bytes == :unlimited ? "unlimited" : "#{bytes / 1024} KB"
      end

      def advice(advice)
        return ["Advice     nothing to change; `heddle demo` measures how fast it is"] if advice.empty?

        advice.each_with_index.map { |line, index| "#{index.zero? ? "Advice    " : "          "} - #{line}" }
      end
    end
  end
end

Heddle::CLI.add("doctor", Heddle::CLI::Doctor.new)
