# frozen_string_literal: true

module Heddle
  module Rails
    # @private
    class Railtie < ::Rails::Railtie
      config.heddle = ActiveSupport::OrderedOptions.new
      config.heddle.inherit_current = true

      # ActiveSupport sets the isolation level after all initializers; callbacks that are registered later run later.
      initializer "heddle", after: "active_support.isolation_level" do |app|
        config.after_initialize do
          Rails.inherit_current = app.config.heddle.inherit_current
          Isolation.warn_once(::Rails.logger)
        end
      end
    end
  end
end
