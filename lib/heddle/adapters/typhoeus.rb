# frozen_string_literal: true

require_relative "../adapters"

module Heddle
  Adapters.load_library("typhoeus", ">= 1.4", "< 2")

  module Adapters
    # Typhoeus (and Ethon, on which it is built) waits in libcurl. In tasks libcurl names the sockets that it waits for,
    # and the task waits on the loop: Typhoeus.get and similar methods, Request#run and Hydra#run, also of several
    # tasks.
    #
    # A cancel or a timeout ends the request at once, and closes its connection. The limits of the request (+timeout+,
    # +connecttimeout+) work as before. The callbacks on_headers, on_body and on_progress are called inside of libcurl:
    # a wait in them stops the thread. on_complete may wait.
    #
    # @private
    module Typhoeus
      # Milliseconds to wait at most where libcurl has no time of its own.
      NO_TIMER = 1000
      # Milliseconds to wait where libcurl cannot name what it waits for.
      UNKNOWN = 20
      # The largest number of descriptors that libcurl can name.
      DESCRIPTORS = 1024

      # Takes the place of methods of Ethon::Multi.
      module Multi
        def poll(milliseconds = 1000) = Adapters.task? ? heddle_wait(milliseconds) : super

        def wait(milliseconds = 1000) = Adapters.task? ? heddle_wait(milliseconds) : super

        private

        # A switch to another task in one of libcurl's callbacks would mix up the calls of FFI.
        def trigger(*) = Adapters.task? ? Heddle.blocking { super } : super

        def heddle_wait(milliseconds)
          return 0 unless ongoing? # Ethon waits once more when all requests have ended

          seconds = heddle_time(milliseconds) / 1000.0
          reading, writing = heddle_descriptors
          if (reading + writing).empty?
            sleep([seconds, UNKNOWN / 1000.0].min)
            return 0
          end
          IO.select(heddle_ios(reading, "r"), heddle_ios(writing, "w"), nil, seconds).to_a.sum(&:size)
        end

        # Corrects Ethon, which turns "no timer" into one millisecond.
        def heddle_time(milliseconds)
          timer = (@heddle_timer ||= ::FFI::MemoryPointer.new(:long))
          code = ::Ethon::Curl.multi_timeout(handle, timer)
          code == :ok && timer.read_long.negative? ? NO_TIMER : milliseconds
        end

        # @return [Array<Array<Integer>>] the descriptors from which libcurl would read, and to which it would write
        def heddle_descriptors
          @heddle_sets ||= Array.new(3) { ::Ethon::Curl::FDSet.new }
          @heddle_highest ||= ::FFI::MemoryPointer.new(:int)
          @heddle_sets.each(&:clear)
          code = ::Ethon::Curl.multi_fdset(handle, *@heddle_sets, @heddle_highest)
          raise ::Ethon::Errors::MultiFdset.new(code) unless code == :ok # rubocop:disable Style/RaiseArgs

          highest = [@heddle_highest.read_int, DESCRIPTORS - 1].min
          @heddle_sets.first(2).map do |set|
            bits = set.to_ptr.read_bytes(DESCRIPTORS / 8).unpack1("b*")
            (0..highest).select { |descriptor| bits[descriptor] == "1" }
          end
        end

        def heddle_ios(descriptors, mode)
          descriptors.map { |descriptor| IO.for_fd(descriptor, mode, autoclose: false) }
        end
      end

      # Takes the place of methods of Ethon::Easy.
      module Easy
        # Performs the request with a Multi of its own, which keeps its connections for the next request.
        def perform
          return super unless Adapters.task?

          begin
            multi = @heddle_multi || ::Ethon::Multi.new
            @heddle_multi = nil
            multi.add(self)
            multi.perform
            @heddle_multi = multi unless @heddle_cleaned_up
            @heddle_return_code
          ensure
            multi&.cleanup unless @heddle_multi
          end
        end

        # A callback may reset the handle.
        def complete
          @heddle_return_code = return_code
          super
        end

        def cleanup
          super
          @heddle_cleaned_up = true
          @heddle_multi&.cleanup
          @heddle_multi = nil
        end
      end

      Adapters.prepend_to("typhoeus", ::Ethon::Multi, Multi)
      Adapters.prepend_to("typhoeus", ::Ethon::Easy, Easy)
    end
  end
end
