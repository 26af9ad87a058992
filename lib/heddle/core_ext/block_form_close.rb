# frozen_string_literal: true

module Heddle
  module CoreExt
    # IO.popen and PTY.open close what they have opened when their block ends, but not by the method IO#close: the
    # fibers that wait for it are woken here.
    module BlockFormClose
      # @private
      def popen(*, **)
        return super unless block_given?

        super do |io|
          yield io
        ensure
          IOClose.wake_waiters(io)
        end
      end

      # For PTY.
      module PTYOpen
        # @see https://docs.ruby-lang.org/en/master/PTY.html#method-c-open
        def open
          return super unless block_given?

          super do |pair|
            yield pair
          ensure
            pair.each { |io| IOClose.wake_waiters(io) }
          end
        end
      end

      # PTY is often loaded later than Heddle: the last that it defines is an error.
      module PTYLoaded
        private

        def inherited(error)
          super
          PTY.singleton_class.prepend(PTYOpen) if error.name == "PTY::ChildExited"
        end
      end
      private_constant :PTYLoaded

      if !Object.autoload?(:PTY) && defined?(PTY::ChildExited)
        PTY.singleton_class.prepend(PTYOpen)
      else
        StandardError.singleton_class.prepend(PTYLoaded)
      end
    end
  end
end

IO.singleton_class.prepend(Heddle::CoreExt::BlockFormClose)
