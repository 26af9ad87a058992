# frozen_string_literal: true

require_relative "../heddle"

module Heddle
  # The methods that the adapters (lib/heddle/adapters/) have in common. An adapter changes one library: it hands the
  # calls that would stop the thread to another thread, or lets them wait on the loop. It does nothing outside of tasks.
  #
  # @private
  module Adapters
    class << self
      # Loads a library, and checks that the adapter was written for this version.
      #
      # @param gem [String]
      # @param file [String] the file to require
      # @param versions [Array<String>] of the gem
      # @param feature [String] the name that the program has required
      # @raise [LoadError] if the library is missing, or has another version
      def load_library(gem, *versions, file: gem, feature: "heddle/adapters/#{gem}")
        require file
        version = Gem.loaded_specs[gem]&.version unless versions.empty?
        return if version.nil? || Gem::Requirement.new(versions).satisfied_by?(version)

        raise LoadError, "#{feature} is for #{gem} #{versions.join(", ")}, and this is #{gem} #{version}"
      rescue LoadError => e
        raise e unless e.path == file

        raise LoadError, "#{feature} needs the gem #{gem}: #{e.message}"
      end

      # Prepends a module whose methods call those of the library by super.
      #
      # @param gem [String]
      # @param owner [Module]
      # @param methods [Module]
      # @param feature [String] the name that the program has required
      # @raise [LoadError] if the library has no such methods
      def prepend_to(gem, owner, methods, feature: "heddle/adapters/#{gem}")
        names = methods.instance_methods(false) + methods.private_instance_methods(false)
        missing = names.reject do |name|
          name.start_with?("heddle_") || owner.method_defined?(name) || owner.private_method_defined?(name)
        end
        return owner.prepend(methods) if missing.empty?

        raise LoadError, "#{feature}: #{owner} has no method #{missing.join(", ")} in #{gem} " \
                         "#{Gem.loaded_specs[gem]&.version}"
      end

      # @return [Boolean] may the caller wait on the loop?
      def task? = !Scheduler.current.nil? && !Fiber.current.blocking?
    end
  end
  private_constant :Adapters
end
