# frozen_string_literal: true

# For Rails, or for ActiveSupport and ActiveRecord alone. It is not loaded by `require "heddle"`, which needs no gem.
require "active_support"
require "active_support/lazy_load_hooks"
require "active_support/isolated_execution_state"
require_relative "../heddle"
require_relative "rack"
require_relative "rails/errors"
require_relative "rails/inheritance"
require_relative "rails/isolation"
require_relative "rails/interrupted_queries"
require_relative "rails/railtie" if defined?(Rails::Railtie)

Heddle::Rails::Inheritance.start
Heddle::Rails::Errors.start
ActiveSupport.on_load(:active_record) do
  Heddle::Rails::InterruptedQueries.start
  Heddle::Rails::Inheritance.base = ActiveRecord::Base
end
