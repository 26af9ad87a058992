# frozen_string_literal: true

module Heddle
  module Rails
    # Says whether each task has a state of its own in ActiveSupport and I18n.
    #
    # @private
    module Isolation
      BY_THREAD = "heddle: config.active_support.isolation_level is :thread, so all tasks of a thread share one " \
                  "ActiveRecord connection, one transaction and one set of Current attributes. Set " \
                  "config.active_support.isolation_level = :fiber in config/application.rb (without Rails: " \
                  "ActiveSupport::IsolatedExecutionState.isolation_level = :fiber)."
      LOCALE_BY_THREAD = "heddle: i18n %s keeps I18n.locale by thread, so all tasks of a thread share it. " \
                         "Use i18n 1.15 or newer."
      private_constant :BY_THREAD, :LOCALE_BY_THREAD

      class << self
        # @return [Boolean]
        def by_fiber? = ::ActiveSupport::IsolatedExecutionState.isolation_level == :fiber

        # On the first call, warns of state that is not kept by fiber, and says what helps.
        #
        # @param logger [#warn, nil] nil: stderr
        # @return [nil]
        def warn_once(logger = nil)
          return if @warned

          @warned = true
          remedies.each { |text| logger ? logger.warn(text) : warn(text) }
          nil
        end

        # @return [String, nil] the remedy, if the locale is kept by thread
        def locale_remedy = (format(LOCALE_BY_THREAD, ::I18n::VERSION) if locale_by_thread?)

        private

        def remedies = [(BY_THREAD unless by_fiber?), locale_remedy].compact

        # i18n 1.14.8 keeps the locale by thread; earlier versions keep it by fiber, later ones in the Fiber storage.
        def locale_by_thread?
          return false unless defined?(::I18n)

          ::I18n.config # made at its first use
          Thread.current.thread_variable?(:i18n_config)
        end
      end
    end
  end
end
