# frozen_string_literal: true

require "etc"
require_relative "../../internal/ruby_features"
require_relative "../../version"
require_relative "../open_files"

module Heddle
  module CLI
    # Everything that `heddle doctor` finds out. It also works where Heddle itself cannot be loaded, and says why. Sizes
    # are in bytes, :unlimited where there is no limit.
    #
    # @private
    class Facts
      # The features of a Linux kernel that Heddle uses, with the version that added them.
      KERNEL_FEATURES = {
        "pidfd_open" => ["5.3", "tells when a child process ends; without it Heddle checks every 0.5 to 20 ms"],
        "io_uring" => ["5.11", "tells what is ready to be read or written, with fewer system calls than epoll"],
        "epoll_pwait2" => ["5.11", "makes timers on epoll finer than a millisecond"],
        "io_uring deferred work" => ["6.1", "hands over completions only when Heddle asks for them"]
      }.freeze

      # The hooks of Ruby's Fiber::Scheduler interface, by the version that added them.
      HOOKS = {
        "3.0" => %w[block unblock kernel_sleep fiber scheduler_close io_wait process_wait],
        "3.1" => %w[io_read io_write io_pread io_pwrite timeout_after address_resolve],
        "3.2" => %w[io_select],
        "3.4" => %w[blocking_operation_wait],
        "4.0" => %w[io_close fiber_interrupt yield]
      }.freeze

      # A fiber's stack and its guard page.
      MAPS_PER_FIBER = 2

      # @return [Hash]
      def to_h
        limits = limits()
        OpenFiles.raise_limit
        failure = load_failure
        @loaded = failure.nil?
        backend, failure = backend_or_failure if @loaded
        { heddle: VERSION, ruby: ruby, backend: backend, backends: @loaded ? Heddle.backends : [], wanted: wanted,
          failure: failure, calls: @loaded ? calls : nil, kernel: kernel, hooks: hooks, patches: patches,
          net_http: net_http, limits: limits.merge(open_files_raised_to: OpenFiles.limit) }
      end

      private

      # @return [String, nil] why Heddle cannot be loaded
      def load_failure
        require "heddle"
        nil
      rescue LoadError, SyntaxError, ArgumentError => e # the last one: HEDDLE_WITHOUT
        e.message.lines.first.chomp
      end

      # Returns the backend that Heddle.run would take, or the reason why it cannot take any.
      def backend_or_failure
        scheduler = Scheduler.new
        @shares_calls = scheduler.send(:shares_calls?)
        [scheduler.backend, nil]
      rescue Heddle::Error, ArgumentError => e
        [nil, e.message]
      ensure
        scheduler&.close
      end

      def wanted = environment("HEDDLE_BACKEND")

      def environment(variable)
        value = ENV.fetch(variable, "")
        value unless value.empty?
      end

      # Says what a system call costs here, and whether small reads and writes of tasks share system calls for that.
      def calls
        { nanoseconds: Scheduler.send(:call_cost), shared: @shares_calls, wanted: environment("HEDDLE_CALLS") }
      end

      def ruby
        { version: RUBY_VERSION, description: RUBY_DESCRIPTION, yjit: yjit,
          mn_threads: RUBY_DESCRIPTION.include?("+MN"), time_slices: }
      end

      # Returns nil if they work, or if the extension is missing.
      def time_slices
        reason = TimeSlices.obstacle if defined?(TimeSlices)
        "do not work: #{reason}" if reason
      end

      def yjit
        return "not built" unless RubyVM.const_defined?(:YJIT)

        RubyVM::YJIT.enabled? ? "on" : "off"
      end

      # Answers for each hook: since which Ruby does it exist, does this Ruby call it, does Heddle define it?
      def hooks
        HOOKS.flat_map do |since, names|
          offered = RubyFeatures.at_least?(since)
          names.map { |name| { name:, since:, offered:, defined: @loaded && Scheduler.method_defined?(name) } }
        end
      end

      # Returns the names of the patches, by their state.
      def patches
        return {} unless @loaded

        Heddle.patches.group_by(&:state).transform_values { |patches| patches.map(&:name) }
      end

      # Says what `require "heddle/accelerate/net_http"` does with the Net::HTTP of this Ruby.
      def net_http
        return unless @loaded

        require "heddle/accelerate/net_http"
        { version: Net::HTTP::VERSION, active: Accelerate::NetHTTP.active, left_out: Accelerate::NetHTTP.left_out }
      end

      def kernel
        name, release = Etc.uname.values_at(:sysname, :release)
        features = name == "Linux" ? kernel_features(release) : {}
        { name:, release:, cores: Etc.nprocessors, features:, # 0: allowed, 1: for a group only, 2: for nobody
          io_uring_disabled: number_in("/proc/sys/kernel/io_uring_disabled"), seccomp: seccomp? }
      end

      # Asks the kernel: versions get features of later ones, and sandboxes refuse what is there. Without the extension
      # only the version can tell.
      def kernel_features(release)
        unless @loaded
          version = release[/\A\d+(\.\d+)*/] || "0"
          return KERNEL_FEATURES.transform_values { |since,| RubyFeatures.at_least?(since, version) }
        end

        child_ends, fine_timers, deferred_work = Scheduler.send(:kernel_features)
        uring = Heddle.backends.any? { |backend| backend[:name] == "uring" && backend[:available] }
        { "pidfd_open" => child_ends, "io_uring" => uring, "epoll_pwait2" => fine_timers,
          "io_uring deferred work" => deferred_work }
      end

      # Does a seccomp filter (of a container or a service) restrict the system calls?
      def seccomp?
        File.read("/proc/self/status")[/^Seccomp:\s*(\d)/, 1] == "2"
      rescue SystemCallError
        false
      end

      def limits
        stacks = RubyVM::DEFAULT_PARAMS
        maps = number_in("/proc/sys/vm/max_map_count")
        { open_files: limit(:NOFILE), locked_memory: limit(:MEMLOCK), root: Process.euid.zero?,
          max_map_count: maps, fibers: maps && fibers(maps),
          fiber_stack: stacks.fetch(:fiber_vm_stack_size), thread_stack: stacks.fetch(:thread_vm_stack_size) }
      end

      def limit(name)
        soft, hard = Process.getrlimit(name).map { |value| value == Process::RLIM_INFINITY ? :unlimited : value }
        { soft:, hard: }
      end

      # Estimates how many fibers can be alive at once.
      def fibers(maps)
        (maps - File.foreach("/proc/self/maps").count) / MAPS_PER_FIBER
      rescue SystemCallError
        nil
      end

      # @return [Integer, nil] nil: this kernel does not have the file
      def number_in(path)
        Integer(File.read(path), exception: false)
      rescue SystemCallError
        nil
      end
    end
  end
end
