# frozen_string_literal: true

# For web servers that do not support Heddle. It is not loaded by `require "heddle"`, and needs no gem.
require_relative "../heddle"
require_relative "rack/body"
require_relative "rack/metrics"
require_relative "rack/middleware"
