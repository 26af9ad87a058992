# frozen_string_literal: true

require_relative "../ruby_features"

module Heddle
  module CLI
    # What `heddle doctor` finds out about this Ruby.
    module RubyFacts
      # The hooks of Ruby's Fiber::Scheduler interface, by the version that brought them.
      HOOKS = {
        "3.0" => %w[block unblock kernel_sleep fiber scheduler_close io_wait process_wait],
        "3.1" => %w[io_read io_write io_pread io_pwrite timeout_after address_resolve],
        "3.2" => %w[io_select],
        "3.4" => %w[blocking_operation_wait],
        "4.0" => %w[io_close fiber_interrupt yield]
      }.freeze

      module_function

      # @return [Hash]
      def to_h
        { version: RUBY_VERSION, description: RUBY_DESCRIPTION, yjit: yjit,
          mn_threads: RUBY_DESCRIPTION.include?("+MN") }
      end

      # @return [String] "on", "off" or "not built"
      def yjit
        return "not built" unless RubyVM.const_defined?(:YJIT)

        RubyVM::YJIT.enabled? ? "on" : "off"
      end

      # @param scheduler [Class, nil] Heddle::Scheduler, if it could be loaded
      # @return [Array<Hash>] each hook: since which Ruby, does this one call it, does the scheduler define it
      def hooks(scheduler)
        HOOKS.flat_map do |since, names|
          names.map do |name|
            { name:, since:, offered: RubyFeatures.at_least?(since),
              defined: scheduler ? scheduler.method_defined?(name) : false }
          end
        end
      end
    end
  end
end
