# frozen_string_literal: true

module Heddle
  module CLI
    # Removes the frames of `heddle run` and of Heddle itself from an error's backtrace, so that Ruby's report of it
    # reads as without Heddle. With `ruby -d` they stay.
    #
    # @private
    module OwnFrames
      # lib/ and exe/ of this copy of Heddle, and the file that was started: exe/heddle, or the file with which RubyGems
      # or Bundler replaced it.
      OWN = [*%w[../../../ ../../../../exe/].map { |dir| "#{File.expand_path(dir, __dir__)}/" },
             "#{$PROGRAM_NAME}:"].freeze
      # The beginning of the frames below the script's main program.
      BELOW = "#{File.join(__dir__, "main_program.rb")}:".freeze
      private_constant :OWN, :BELOW

      # @param error [Exception] changed in place, and so are its causes
      # @param name [String] the name of the main program in a backtrace
      # @param callers [Array<String>] the frames of the code that has called `heddle run`
      # @return [void]
      def self.remove_from(error, name, callers)
        return if $DEBUG

        callers = without_own(callers).reverse
        while error
          frames = error.backtrace
          error.set_backtrace(cleaned(frames, name, callers)) if frames && !error.frozen?
          error = error.cause
        end
      end

      # Returns the frames of the program alone. A main program that was compiled from a String is called <compiled>. A
      # program that cannot be compiled has no frames: its name stands for it. RubyGems replaces exe/heddle with a file
      # that loads it, which adds frames of RubyGems.
      def self.cleaned(frames, name, callers)
        above = without_own(frames.take_while { |frame| !frame.start_with?(BELOW) })
        above.pop(above.reverse.zip(callers).take_while { |frame, caller| frame == caller }.size)
        return [name] if above.empty?

        above.map { |frame| frame.start_with?("#{name}:") ? frame.sub(/<compiled>(?='\z)/, "<main>") : frame }
      end

      def self.without_own(frames) = frames.reject { |frame| frame.start_with?(*OWN) }
      private_class_method :cleaned, :without_own
    end
  end
end
