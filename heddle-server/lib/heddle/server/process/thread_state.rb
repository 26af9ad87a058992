# frozen_string_literal: true

module Heddle
  class Server
    # Looks after the state that libraries keep by thread. All requests of a process share a thread, so one request
    # would see what another one has set. Settings that can be corrected are corrected. The others are named in the log,
    # each with its remedy.
    #
    # @private
    class ThreadState
      # Thread variables of Heddle, of Ruby's own libraries and of libraries below. They do not belong to a request.
      HARMLESS = %i[heddle_replaces sentry_hub i18n_config].freeze
      # The thread variables of Bundler 4, which are there under every `bundle exec`.
      BUNDLER = /\Alogger_level_\d+\z/
      SENTRY = "sentry-ruby keeps the user and the breadcrumbs of a report by thread, so a report may name the user " \
               "of another request"
      HUB = "set `config.hub_isolation_level = :fiber` in Sentry.init"
      SEQUEL = "Sequel keeps its connections by thread, so requests share a connection and a transaction: call " \
               "`Sequel.extension :fiber_concurrency` before Sequel.connect"
      VARIABLE = "the thread variable %s is shared by all requests of this process, because they run in one thread: " \
                 "keep what belongs to a request in Fiber[:name], or in ActiveSupport::CurrentAttributes"
      LEVEL = "config.active_support.isolation_level was :thread; it is :fiber now, because all requests run in one " \
              "thread. Set it to :fiber in config/application.rb"
      LOCALE = "i18n %s keeps I18n.locale by thread, so all requests share it: use i18n 1.15 or newer"
      private_constant :HARMLESS, :BUNDLER, :SENTRY, :HUB, :SEQUEL, :VARIABLE, :LEVEL, :LOCALE

      # @param settings [Settings] the settings whose log is used
      def initialize(settings)
        @settings = settings
        @named = HARMLESS.dup
      end

      # Corrects settings, and names the others, when the application is loaded.
      #
      # @return [void]
      def make_safe
        isolate_by_fiber
        [sentry, sequel, locale].compact.each { |text| @settings.say(text) }
      end

      # Names the thread variables that exist now, each once.
      #
      # @return [void]
      def look
        (Thread.current.thread_variables - @named).each do |name|
          @named << name
          @settings.say(format(VARIABLE, name.inspect)) unless BUNDLER.match?(name)
        end
      end

      private

      # Makes Rails keep its state by fiber: current attributes, ActiveRecord's connection and transaction, the tags of
      # the log.
      def isolate_by_fiber
        return unless defined?(::ActiveSupport) && ::ActiveSupport.respond_to?(:on_load)
        return if ::ActiveSupport.version < Gem::Version.new("7.0")

        state = ::ActiveSupport::IsolatedExecutionState
        if state.isolation_level == :thread
          state.isolation_level = :fiber
          @settings.say(LEVEL)
        end
        require "heddle/rails"
      end

      def sentry
        return unless defined?(::Sentry.configuration) && ::Sentry.initialized?

        configuration = ::Sentry.configuration
        return "#{SENTRY}: use version 7.1 or newer, and #{HUB}" unless configuration.respond_to?(:hub_isolation_level)

        "#{SENTRY}: #{HUB}" unless configuration.hub_isolation_level == :fiber
      end

      def sequel = (SEQUEL if defined?(::Sequel) && ::Sequel.respond_to?(:current) && !::Sequel.current.is_a?(Fiber))

      # i18n 1.14.8 keeps the locale by thread; earlier versions keep it by fiber, later ones in the Fiber storage.
      def locale
        return unless defined?(::I18n)

        ::I18n.config # made at its first use
        format(LOCALE, ::I18n::VERSION) if Thread.current.thread_variable?(:i18n_config)
      end
    end
  end
end
