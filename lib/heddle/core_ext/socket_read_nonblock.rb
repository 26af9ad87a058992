# frozen_string_literal: true

# Replaces BasicSocket#read_nonblock, which event loops and Net::HTTP call most. It is the method of Ruby's socket.rb,
# but it counts against the turn of its task; and the exception that says "it would block" is raised here, which saves
# an eighth of the whole call.
#
# It replaces Ruby's method itself, so that the program sees no other method. If somebody else has already replaced the
# method, it stays as it is. The alias keeps Ruby from warning.
#
# @private
class BasicSocket
  original = instance_method(:read_nonblock)
  if private_method_defined?(:__read_nonblock) && original.owner.equal?(self) &&
     $LOADED_FEATURES.include?(original.source_location&.first)
    alias read_nonblock read_nonblock

    # @see https://docs.ruby-lang.org/en/master/IO.html#method-i-read_nonblock
    def read_nonblock(len, str = nil, exception: true)
      Heddle::CoreExt.spend_turn(self)
      return __read_nonblock(len, str, exception) unless exception

      result = __read_nonblock(len, str, false)
      return result unless result.nil? || :wait_readable == result # rubocop:disable Style/YodaCondition -- no String#==

      raise EOFError, "end of file reached" unless result

      Heddle::CoreExt.raise_known(IO::EAGAINWaitReadable, "read would block")
      __read_nonblock(len, str, exception)
    end
  end
end
