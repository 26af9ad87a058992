# frozen_string_literal: true

module Heddle
  module CoreExt
    # Wakes the fibers that wait for an IO when the block of IO.popen or PTY.open ends. Ruby closes the IO then, but not
    # by the method IO#close.
    module BlockFormClose
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
          return __heddle_block_open unless block_given?

          __heddle_block_open do |pair|
            yield pair
          ensure
            pair.each { |io| IOClose.wake_waiters(io) }
          end
        end
      end

      # PTY is often loaded later than Heddle: the last constant that it defines is an error class.
      module PTYLoaded
        def inherited(error) # rubocop:disable Lint/MissingSuper -- it is what this one calls
          __heddle_block_inherited(error)
          BlockFormClose.replace_pty_open if error.name == "PTY::ChildExited"
        end
      end
      private_constant :PTYLoaded

      class << self
        def put_in_place
          return replace_pty_open if !Object.autoload?(:PTY) && defined?(PTY::ChildExited)

          CoreExt.replace(Patches[:block_form_close], StandardError.singleton_class, PTYLoaded)
        end

        def replace_pty_open
          CoreExt.replace(Patches[:block_form_close], PTY.singleton_class, PTYOpen)
        end
      end
    end
  end
end
