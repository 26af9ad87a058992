# frozen_string_literal: true

require_relative "task_failure"
require_relative "wording"

module Heddle
  # Arguments that several methods check in the same way. An ArgumentError names the argument.
  module Check
    # Times in seconds that Heddle accepts: Ruby cannot wait longer on every system, and no clock is finer.
    SECONDS = 1e-9..1e9
    # The number of characters of a wrong argument that its error shows.
    SHOWN = 80
    private_constant :SHOWN

    # Raises an error whose backtrace begins where the program has called Heddle. The backtrace consists of Strings:
    # else error_highlight would show the line of Heddle that raises.
    # @raise [ArgumentError]
    def self.refuse(message, kind = ArgumentError)
      frames = TaskFailure.clean(caller)
      raise kind, message, frames.empty? ? caller : frames
    end

    # @return [String] a wrong argument as its error shows it: in one line, and not too long
    def self.shown(value)
      text = Wording.in_line(value, :inspect)
      text.size > SHOWN ? "#{text[0, SHOWN]}..." : text
    end

    # @param also [String] other values that may be given
    # @raise [ArgumentError]
    def self.positive_integer(name, value, also = "")
      return if value.is_a?(Integer) && value.positive?

      refuse("#{name}: must be a positive Integer#{also}, not #{shown(value)}")
    end

    # Checks a time that is longer than 0, and finite.
    # @raise [ArgumentError]
    def self.seconds(name, value)
      right = value.is_a?(Numeric) && value.real? && value.positive?
      refuse("#{name}: must be a positive number of seconds, not #{shown(value)}") unless right
      return if SECONDS.cover?(value)

      refuse("#{name}: must be from #{SECONDS.begin} to #{SECONDS.end} seconds, not #{shown(value)}")
    end

    # Checks a time limit. nil: no limit; 0 or less: the time is over.
    # @raise [ArgumentError]
    def self.time(name, value)
      return if value.nil? || (value.is_a?(Numeric) && value.real? && (value <=> 0))

      refuse("#{name}: must be a number of seconds or nil, not #{shown(value)}")
    end

    # Checks a time limit where less than 0 has no meaning.
    # @raise [ArgumentError]
    def self.length_of_time(name, value)
      time(name, value)
      return unless value&.negative?

      refuse("#{name}: must not be negative, unlike #{shown(value)}")
    end

    # Checks a pause, which may also be 0.
    # @param also [String] other values that may be given
    # @raise [ArgumentError]
    def self.pause(name, value, also = "")
      return if value.is_a?(Numeric) && value.real? && (0..SECONDS.end).cover?(value)

      refuse("#{name}: must be #{also}from 0 to #{SECONDS.end} seconds, not #{shown(value)}")
    end

    # @raise [ArgumentError]
    def self.fraction(name, value)
      return if value.is_a?(Numeric) && value.real? && (0..1).cover?(value)

      refuse("#{name}: must be a number from 0 to 1, not #{shown(value)}")
    end

    # @raise [ArgumentError]
    def self.one_of(name, value, values)
      return if values.include?(value)

      refuse("#{name}: must be #{values.map(&:inspect).join(" or ")}, not #{shown(value)}")
    end

    # @raise [ArgumentError]
    def self.boolean(name, value)
      refuse("#{name}: must be true or false, not #{shown(value)}") unless [true, false].include?(value)
    end

    # Refuses a call of new for a class whose objects only Heddle makes; it stands in place of an argument that Heddle
    # always passes. A private method new would make each spawn slower.
    # @param instead [String] the method that a program should call
    # @raise [NoMethodError]
    def self.no_new(kind, instead)
      refuse("private method 'new' called for class #{kind}: call #{instead}", NoMethodError)
    end

    # Checks a name: an object that a report can show, or that returns one when a report is made.
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

    # Checks a callable; nil stands for none.
    # @raise [ArgumentError]
    def self.callable(name, value)
      responds(name, value, :call) unless value.nil?
    end

    # Checks the patterns with which an error is compared. Everything has a ===, but a name never matches an error.
    # @raise [ArgumentError]
    def self.patterns(name, values)
      wrong = values.select { |value| [String, Symbol, Numeric, NilClass].any? { |kind| value.is_a?(kind) } }
      return if wrong.empty?

      refuse("#{name}: must be classes, modules or Procs, unlike #{shown(wrong.first)}")
    end
  end
  private_constant :Check
end
