# frozen_string_literal: true

# BasicSocket#read_nonblock, the method that event loops call most, and Net::HTTP: as in Ruby's socket.rb, but it counts
# against the turn of its task; and the exception that says "it would block" is raised here, which saves an eighth of
# the whole call.
#
# It takes the place of Ruby's method, so that nobody sees another one; not of one that somebody else has put there.
# (The alias keeps Ruby from warning.)
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
