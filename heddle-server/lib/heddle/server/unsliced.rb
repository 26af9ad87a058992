# frozen_string_literal: true

require "heddle"

module Heddle
  class Server
    # Keeps libraries whole whose state the tasks of a connection share: no time slice ends in their code.
    module Unsliced
      # @param names [Array<String>] a class of each library, in whose folder all of its code is
      def self.libraries_of(*names)
        names.each { |name| Heddle.exempt_from_time_slices(File.dirname(Object.const_source_location(name).first)) }
      end
    end
    private_constant :Unsliced
  end
end
