# frozen_string_literal: true

module Heddle
  module CLI
    # Takes the frames of `heddle run` and of Heddle itself out of an error's backtrace, so that Ruby's report of it
    # reads as without Heddle. With `ruby -d` they stay.
    module Backtrace
      # lib/ and exe/ of this copy of Heddle.
      OWN = %w[../../ ../../../exe/].map { |dir| "#{File.expand_path(dir, __dir__)}/" }.freeze

      module_function

      # @param error [Exception] changed in place, and so are its causes
      # @return [void]
      def clean(error)
        return if $DEBUG

        while error
          trim(error)
          error = error.cause
        end
      end

      # Takes Heddle's own frames out of one error's backtrace.
      # @param error [Exception]
      # @return [void]
      def trim(error)
        frames = error.backtrace
        return if frames.nil? || error.frozen?

        error.set_backtrace(above_main(frames).reject { |frame| frame.start_with?(*OWN) || bottom?(frame) })
      end

      # Without what stands below the script's main program.
      def above_main(frames)
        frames.take_while { |frame| !frame.start_with?(SCRIPT) }
      end

      # The file that was started: exe/heddle, or what RubyGems or Bundler put in its place.
      def bottom?(frame)
        frame.start_with?("#{STARTED}:")
      end

      SCRIPT = "#{File.join(__dir__, "script.rb")}:".freeze
      STARTED = $PROGRAM_NAME.dup.freeze
      private_constant :SCRIPT, :STARTED
    end
  end
end
