# frozen_string_literal: true

module Heddle
  # Arguments that several methods check in the same way. An ArgumentError names the argument.
  module Check
    # @param also [String] what else may be given
    # @raise [ArgumentError]
    def self.positive_integer(name, value, also = "")
      return if value.is_a?(Integer) && value.positive?

      raise ArgumentError, "#{name}: must be a positive Integer#{also}, not #{value.inspect}"
    end

    # @param unit [String] what it is a number of
    # @raise [ArgumentError]
    def self.positive_number(name, value, unit = "")
      return if value.is_a?(Numeric) && value.real? && value.positive? && value.to_f.finite?

      raise ArgumentError, "#{name}: must be a positive number#{unit}, not #{value.inspect}"
    end

    # A time that something may take: nil: as long as it likes; 0 or less: it is over.
    # @raise [ArgumentError]
    def self.time(name, value)
      return if value.nil? || (value.is_a?(Numeric) && value.real? && !value.to_f.nan?)

      raise ArgumentError, "#{name}: must be a number of seconds or nil, not #{value.inspect}"
    end

    # The same where less than 0 has no meaning.
    # @raise [ArgumentError]
    def self.length_of_time(name, value)
      time(name, value)
      return unless value&.negative?

      raise ArgumentError, "#{name}: must not be negative, unlike #{value.inspect}"
    end

    # For a class whose objects only Heddle makes, in place of an argument that it always gives. (A private method new
    # would make each spawn slower.)
    # @param instead [String] what a program calls
    # @raise [NoMethodError]
    def self.no_new(kind, instead)
      raise NoMethodError, "private method 'new' called for class #{kind}: call #{instead}"
    end

    # What a report can show.
    # @return [String, Symbol] the name
    # @raise [ArgumentError]
    def self.task_name(value)
      return value if value.is_a?(Symbol) || (value.is_a?(String) && value.encoding.ascii_compatible?)

      raise ArgumentError, "name: must be a String or a Symbol that can be shown beside ASCII, not #{value.inspect}"
    end

    # nil: there is none.
    # @raise [ArgumentError]
    def self.callable(name, value)
      return if value.nil? || value.respond_to?(:call)

      raise ArgumentError, "#{name}: must have the method call, unlike #{value.inspect}"
    end

    # What an error is compared with. (Everything has a ===, but that of a name never holds for an error.)
    # @raise [ArgumentError]
    def self.patterns(name, values)
      wrong = values.select { |value| [String, Symbol, Numeric, NilClass].any? { |kind| value.is_a?(kind) } }
      return if wrong.empty?

      raise ArgumentError, "#{name}: must be classes, modules or Procs, unlike #{wrong.first.inspect}"
    end
  end
  private_constant :Check
end
