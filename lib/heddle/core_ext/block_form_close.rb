# frozen_string_literal: true

module Heddle
  module CoreExt
    # IO.popen and PTY.open close what they have opened when their block ends, but not by the method IO#close: the
    # fibers that wait for it are woken here.
    module BlockFormClose
      # @private
      def popen(*arguments, **options)
        return __heddle_block_popen(*arguments, **options) unless block_given?

        __heddle_block_popen(*arguments, **options) do |io|
          yield io
        ensure
          IOClose.wake_waiters(io)
        end
      end

      # For PTY.
      module PTYOpen
        # @see https://docs.ruby-lang.org/en/master/PTY.html#method-c-open
        def open
          return __heddle_open unless block_given?

          __heddle_open do |pair|
            yield pair
          ensure
            pair.each { |io| IOClose.wake_waiters(io) }
          end
        end
      end

      # PTY is often loaded later than Heddle: the last that it defines is an error.
      module PTYLoaded
        # @private
        def inherited(error) # rubocop:disable Lint/MissingSuper -- it is what this one calls
          __heddle_pty_inherited(error)
          CoreExt.replace_now(PTY.singleton_class, PTYOpen) if error.name == "PTY::ChildExited"
        end
      end
      private_constant :PTYLoaded

      # @private
      def self.put_in_place
        if !Object.autoload?(:PTY) && defined?(PTY::ChildExited)
          CoreExt.replace_now(PTY.singleton_class, PTYOpen)
        else
          CoreExt.replace_now(StandardError.singleton_class, PTYLoaded, "__heddle_pty_")
        end
      end
    end
  end
end

Heddle::CoreExt.replace(IO.singleton_class, Heddle::CoreExt::BlockFormClose, prefix: "__heddle_block_")
