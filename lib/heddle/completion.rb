# frozen_string_literal: true

module Heddle
  # A queue that is closed when something has ended, and never filled: what others wait on. Heddle.dump names it.
  class Completion < Thread::Queue
    # @param parts [Array<Object>] what it is that ends: words, and objects to be shown as inspect does
    def initialize(*parts)
      super()
      @parts = parts
    end

    # @return [String]
    def name = @parts.map { |part| part.is_a?(String) ? part : part.inspect }.join(" ")
  end
  private_constant :Completion
end
