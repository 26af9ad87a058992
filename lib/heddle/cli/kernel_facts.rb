# frozen_string_literal: true

require "etc"

module Heddle
  module CLI
    # What `heddle doctor` finds out about the kernel.
    module KernelFacts
      # What Heddle gains from a Linux kernel, by the version that brought it.
      FEATURES = {
        "pidfd_open" => ["5.3", "the end of a child is told; else Heddle looks again after naps"],
        "io_uring" => ["5.11", "tells what is ready to be read or written, with fewer system calls than epoll"],
        "epoll_pwait2" => ["5.11", "timers finer than a millisecond on epoll"],
        "io_uring deferred work" => ["6.1", "completions only when Heddle asks for them"]
      }.freeze

      IO_URING_DISABLED = "/proc/sys/kernel/io_uring_disabled"
      STATUS = "/proc/self/status"

      module_function

      # @return [Hash]
      def to_h
        uname = Etc.uname
        { name: uname[:sysname], release: uname[:release], cores: Etc.nprocessors, features: features(uname),
          io_uring_disabled: io_uring_disabled, seccomp: seccomp? }
      end

      # @return [Hash{String => Boolean}] by version: none on other systems than Linux
      def features(uname = Etc.uname)
        release = Gem::Version.new(uname[:release][/\A\d+(\.\d+)*/] || "0")
        FEATURES.transform_values { |since,| uname[:sysname] == "Linux" && release >= Gem::Version.new(since) }
      end

      # @return [Integer, nil] 0: allowed, 1: for a group only, 2: for nobody; nil: this kernel does not say
      def io_uring_disabled
        Integer(File.read(IO_URING_DISABLED), exception: false)
      rescue SystemCallError
        nil
      end

      # @return [Boolean] whether a seccomp filter (a container's, a service's) restricts the system calls
      def seccomp?
        File.read(STATUS)[/^Seccomp:\s*(\d)/, 1] == "2"
      rescue SystemCallError
        false
      end
    end
  end
end
