# frozen_string_literal: true

require "json"
require "socket"

module Heddle
  module CLI
    class Demo
      # A fork of the demo's process that does one job and receives its instructions in lines of JSON. Its job must end
      # when its link ends: so it never outlives the demo, even if the demo was killed.
      class Child
        # A child cannot do its work.
        class Failed < StandardError; end

        @all = []

        class << self
          # @return [Array<Child>] the children that run
          attr_reader :all

          # Do the children run with YJIT? They do where this Ruby has it, unless the user's environment says otherwise.
          def yjit? = RubyVM.const_defined?(:YJIT) && ENV.fetch("RUBY_YJIT_ENABLE", "1") == "1"
        end

        # @yield [Child, UNIXSocket] in the child: its work, the link to its parent
        def initialize
          @link, other = UNIXSocket.pair
          Child.all << self
          @pid = fork do
            trap("INT", "IGNORE") # Ctrl-C reaches the whole process group; the parent decides when to stop
            Child.all.each(&:hang_up) # else their children would not see the parent's end
            RubyVM::YJIT.enable if Child.yjit?
            @link = other
            yield self, other
          rescue LoadError, StandardError => e
            tell(failed: e.message)
          ensure
            exit!
          end
          other.close
        end

        # Sends a message without waiting: in Ruby 3.3, once a thread could not be made, nothing that waits goes on.
        # @return [void]
        def tell(**said) = @link.write_nonblock("#{JSON.generate(said)}\n")

        # @return [Hash] the next message of the other side
        # @raise [Failed] if the other side says that it cannot go on, or sends nothing more
        def hear
          line = @link.gets or raise Failed, "a process of the demo ended before its time"
          said = JSON.parse(line, symbolize_names: true)
          said[:failed] ? raise(Failed, said[:failed]) : said
        end

        # Ends the child, which may be in the middle of a measurement.
        # @return [void]
        def close
          Child.all.delete(self)
          hang_up
          Process.kill(:KILL, @pid)
          Process.wait(@pid)
        end

        # @return [void]
        def hang_up = @link.close
      end
    end
  end
end
