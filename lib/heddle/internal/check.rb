# frozen_string_literal: true

require_relative "task_failure"
require_relative "wording"

module Heddle
  # Arguments that several methods check in the same way. An ArgumentError names the argument.
  module Check
    # Seconds that make sense: Ruby cannot wait for longer on every system, and no clock knows less.
    SECONDS = 1e-9..1e9
    # Characters of a wrong argument that its error shows.
    SHOWN = 80
    private_constant :SHOWN

    # The backtrace begins where the program has called Heddle. (It is of Strings: else error_highlight would show the
    # line of Heddle that raises.)
    # @raise [ArgumentError]
    def self.refuse(message, kind = ArgumentError)
      frames = TaskFailure.clean(caller)
      raise kind, message, frames.empty? ? caller : frames
    end

    # @return [String] a wrong argument for the message of its error: in one line, and not too long
    def self.shown(value)
      text = Wording.in_line(value, :inspect)
      text.size > SHOWN ? "#{text[0, SHOWN]}..." : text
    end

    # @param also [String] what else may be given
    # @raise [ArgumentError]
    def self.positive_integer(name, value, also = "")
      return if value.is_a?(Integer) && value.positive?

      refuse("#{name}: must be a positive Integer#{also}, not #{shown(value)}")
    end

    # A time that is not nothing, and ends.
    # @raise [ArgumentError]
    def self.seconds(name, value)
      right = value.is_a?(Numeric) && value.real? && value.positive?
      refuse("#{name}: must be a positive number of seconds, not #{shown(value)}") unless right
      return if SECONDS.cover?(value)

      refuse("#{name}: must be from #{SECONDS.begin} to #{SECONDS.end} seconds, not #{shown(value)}")
    end

    # A time that something may take: nil: as long as it likes; 0 or less: it is over.
    # @raise [ArgumentError]
    def self.time(name, value)
      return if value.nil? || (value.is_a?(Numeric) && value.real? && (value <=> 0))

      refuse("#{name}: must be a number of seconds or nil, not #{shown(value)}")
    end

    # The same where less than 0 has no meaning.
    # @raise [ArgumentError]
    def self.length_of_time(name, value)
      time(name, value)
      return unless value&.negative?

      refuse("#{name}: must not be negative, unlike #{shown(value)}")
    end

    # For a class whose objects only Heddle makes, in place of an argument that it always gives. (A private method new
    # would make each spawn slower.)
    # @param instead [String] what a program calls
    # @raise [NoMethodError]
    def self.no_new(kind, instead)
      refuse("private method 'new' called for class #{kind}: call #{instead}", NoMethodError)
    end

    # What a report can show, or what returns that when a report is made.
    # @return [String, Symbol, #call] the name
    # @raise [ArgumentError]
    def self.task_name(value)
      return value if value.is_a?(Symbol) || value.respond_to?(:call)
      return value if value.is_a?(String) && value.encoding.ascii_compatible?

      refuse("name: must be a String or a Symbol that can be shown beside ASCII, not #{shown(value)}")
    end

    # @raise [ArgumentError]
    def self.responds(name, value, method)
      return if value.respond_to?(method)

      refuse("#{name}: must have the method #{method}, unlike #{shown(value)}")
    end

    # nil: there is none.
    # @raise [ArgumentError]
    def self.callable(name, value)
      responds(name, value, :call) unless value.nil?
    end

    # What an error is compared with. (Everything has a ===, but that of a name never holds for an error.)
    # @raise [ArgumentError]
    def self.patterns(name, values)
      wrong = values.select { |value| [String, Symbol, Numeric, NilClass].any? { |kind| value.is_a?(kind) } }
      return if wrong.empty?

      refuse("#{name}: must be classes, modules or Procs, unlike #{shown(wrong.first)}")
    end
  end
  private_constant :Check
  private_constant :Check
end
