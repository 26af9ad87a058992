# frozen_string_literal: true

require "heddle"

module TestSupport
  # Ends a time slice at every line at which one may end.
  module SlicesAtLines
    # The frames of the block that ends the slice, and of the method that it calls.
    OWN = 2
    private_constant :OWN

    # The watching thread ends no slice in that block, which also runs on top of code that is exempt.
    Heddle::Scheduler.__send__(:exempt, File.realpath(__FILE__))

    class << self
      # Does so while the block runs, in all threads.
      #
      # @param files [Regexp, nil] also in the files with such paths, even if they are exempt
      def while_in(files: nil, &)
        lines = TracePoint.new(:line) do |point|
          everywhere = files&.match?(point.path)
          Heddle::Scheduler.__send__(:end_slice, everywhere ? nil : OWN)
        end
        lines.enable(target_thread: nil, &)
      end
    end
  end
end
