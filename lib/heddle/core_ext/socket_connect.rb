# frozen_string_literal: true

module Heddle
  module CoreExt
    # Waits for the socket itself while it connects, as Ruby 3.4+ does. Ruby 3.3 asks the scheduler about another IO
    # object that is made for the descriptor alone: neither the socket's timeout nor its close would reach the fiber.
    module SocketConnect
      # @raise [IO::TimeoutError] after IO#timeout
      # @see https://docs.ruby-lang.org/en/3.3/Socket.html#method-i-connect
      def connect(remote_address)
        return __heddle_connect(remote_address) unless Scheduler.current

        begin
          return connect_nonblock(remote_address) # without exceptions it is 0, too, if the socket has been connected
        rescue IO::EINPROGRESSWaitWritable
          nil # it is under way
        end
        wait_writable(timeout) || raise(IO::TimeoutError, "Connect timed out!")
        connect_nonblock(remote_address, exception: false) # 0, or the error of the connect
      end
    end
  end
end
