# frozen_string_literal: true

module Heddle
  module CLI
    # Takes the frames of `heddle run` and of Heddle itself out of an error's backtrace, so that Ruby's report of it
    # reads as without Heddle. With `ruby -d` they stay.
    module OwnFrames
      # lib/ and exe/ of this copy of Heddle, and the file that was started: exe/heddle, or what RubyGems or Bundler put
      # in its place.
      OWN = [*%w[../../../ ../../../../exe/].map { |dir| "#{File.expand_path(dir, __dir__)}/" },
             "#{$PROGRAM_NAME}:"].freeze
      # What stands below the script's main program.
      BELOW = "#{File.join(__dir__, "main_program.rb")}:".freeze
      private_constant :OWN, :BELOW

      # @param error [Exception] changed in place, and so are its causes
      # @return [void]
      def self.remove_from(error)
        return if $DEBUG

        while error
          frames = error.backtrace
          if frames && !error.frozen?
            above = frames.take_while { |frame| !frame.start_with?(BELOW) }
            error.set_backtrace(above.reject { |frame| frame.start_with?(*OWN) })
          end
          error = error.cause
        end
      end
    end
  end
end
