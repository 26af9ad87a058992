# frozen_string_literal: true

module Heddle
  # Answers every question about the version of the running Ruby, by the behaviour of that version. Two constants are
  # also needed in C, and come from there (ext/heddle/ruby/compat.h): OPEN_IS_OFFLOADED and FLUSH_PASSES_BY_IO_WRITE.
  #
  # @private
  module RubyFeatures
    # Heddle needs this Ruby or a newer one: 3.3.0 and 3.3.1 make blocking fibers in rb_fiber_new.
    OLDEST = "3.3.2"

    # @param version [String]
    # @param ruby [String]
    # @return [Boolean] does Ruby have this version, or a newer one?
    def self.at_least?(version, ruby = RUBY_VERSION)
      [ruby, version].map { |text| text.split(".").map(&:to_i) }.then { |numbers| (numbers[0] <=> numbers[1]) >= 0 }
    end

    # Socket#connect waits for the socket itself, and not for another IO object that has its descriptor.
    CONNECT_WAITS_FOR_THE_SOCKET = at_least?("3.4")

    # TCPSocket.new and Socket.tcp try the addresses of a host at the same time, unless fast_fallback: is false; and a
    # connect_timeout of TCPSocket.new ends all attempts.
    ADDRESSES_ARE_RACED = at_least?("3.4")

    # TCPSocket.new and Socket.tcp know open_timeout:.
    OPEN_TIMEOUT_IS_KNOWN = at_least?("4.0")

    # A timeout by an option of TCPSocket.new or Socket.tcp raises an IO::TimeoutError, not Errno::ETIMEDOUT.
    CONNECT_RAISES_IO_TIMEOUT = at_least?("4.0")

    # Addrinfo.getaddrinfo heeds its timeout:, but not when a scheduler resolves the name.
    GETADDRINFO_HEEDS_TIMEOUT = at_least?("4.0")

    # The method timeout of `include Timeout` calls Timeout.timeout.
    INCLUDED_TIMEOUT_CALLS_THE_MODULE = at_least?("4.0")

    # The hook io_pwrite is called with the GVL.
    PWRITE_HAS_THE_GVL = at_least?("4.0")

    # Ruby itself performs an operation that blocking_operation_wait has not called.
    UNCALLED_OPERATIONS_ARE_DONE = at_least?("4.0")
  end
end
