# frozen_string_literal: true

module Heddle
  # A queue that is closed when something has ended, and never filled: what others wait on. Heddle.dump names it.
  class Completion < Thread::Queue
    # @return [String] what it is that ends
    attr_reader :name

    # @param name [String]
    def initialize(name)
      super()
      @name = name
    end
  end
  private_constant :Completion
end
