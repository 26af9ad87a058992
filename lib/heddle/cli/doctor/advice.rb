# frozen_string_literal: true

require_relative "../../internal/ruby_features"

module Heddle
  module CLI
    # Says what can be done about the facts that `heddle doctor` found, in plain words, with the next command to try.
    #
    # @private
    class Advice
      # Fewer open files than this are few for a server.
      FILES_WANTED = 10_000

      # Fewer fibers than this are few for Heddle.
      FIBERS_WANTED = 30_000

      # The part of the limit on locked memory that the smallest ring may take.
      RING_BYTES = 64 * 1024

      # @param facts [Hash] the facts of Examination, without the advice
      def initialize(facts)
        @facts = facts
        @limits = facts[:limits]
      end

      # @return [Array<String>]
      def to_a
        [ruby, failure, io_uring, locked_memory, yjit, soft_files, hard_files, fibers, mn_threads].compact
      end

      private

      def ruby
        version = @facts[:ruby][:version]
        return if RubyFeatures.at_least?(RubyFeatures::OLDEST, version)

        "Ruby #{version} is too old: Heddle needs #{RubyFeatures::OLDEST} or newer; in its repository `bin/setup` " \
          "builds one"
      end

      def mn_threads
        return unless @facts[:ruby][:mn_threads]

        "RUBY_MN_THREADS=1: Heddle works, but cannot use io_uring deferred work, because Ruby's threads move between " \
          "native threads"
      end

      def failure
        return unless @facts[:failure]
        return "unset HEDDLE_WITHOUT, or take its names from guides/patches.md" if switch_refused?

        return "HEDDLE_BACKEND=#{@facts[:wanted]} cannot be used: unset HEDDLE_BACKEND" if @facts[:backends].any?

        "Heddle cannot be loaded: `gem pristine heddle` compiles it again; in its repository `bin/build --ruby " \
          "#{RbConfig.ruby}` does"
      end

      def switch_refused? = @facts[:failure].start_with?("HEDDLE_WITHOUT")

      def io_uring
        uring = @facts[:backends].find { |backend| backend[:name].to_s == "uring" }
        return if uring.nil? || uring[:available]
        return "io_uring is switched off: `sysctl -w kernel.io_uring_disabled=0` as root" if switched_off?

        seccomp = " A seccomp filter is active here: if this is a container, let its profile allow io_uring_setup " \
                  "and io_uring_enter."
        "io_uring cannot be used (#{uring[:reason]}); #{instead}#{seccomp if @facts[:kernel][:seccomp]}"
      end

      # Says what takes the place of io_uring.
      def instead
        return "epoll does the same, a little slower." unless @facts[:backend] == "poll" && !@facts[:wanted]

        "epoll cannot be used either; poll does the same, and takes time for every descriptor for which a task waits."
      end

      def switched_off?
        @facts[:kernel][:io_uring_disabled].to_i > (@limits[:root] ? 1 : 0)
      end

      def locked_memory
        soft = @limits[:locked_memory][:soft]
        return if @limits[:root] || soft == :unlimited || soft >= RING_BYTES

        "io_uring may need more locked memory: `ulimit -l #{RING_BYTES / 1024}`, or LimitMEMLOCK= in a systemd unit"
      end

      def yjit
        case @facts[:ruby][:yjit]
        when "off" then "YJIT is off: `RUBY_YJIT_ENABLE=1 heddle run ...` switches it on"
        when "not built" then "this Ruby was built without YJIT, with which Ruby code runs faster"
        end
      end

      def soft_files
        soft, hard = @limits[:open_files].values_at(:soft, :hard)
        return if soft == hard

        "only #{soft} files may be open at once: call `ulimit -n #{hard}` in the shell that starts your program"
      end

      def hard_files
        hard = @limits[:open_files][:hard]
        return if hard == :unlimited || hard >= FILES_WANTED

        "no more than #{hard} files may be open: raise nofile in /etc/security/limits.conf, or LimitNOFILE= in a " \
          "systemd unit"
      end

      def fibers
        fibers = @limits[:fibers]
        return if fibers.nil? || fibers >= FIBERS_WANTED

        "about #{fibers} fibers fit: `sysctl -w vm.max_map_count=1048576` as root makes room for half a million"
      end
    end
  end
end
