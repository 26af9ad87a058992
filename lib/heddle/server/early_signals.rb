# frozen_string_literal: true

# Ruby loads this file first of all where a program takes the place of another one (see Server::Successor). From then on
# a TERM is kept for Server::Signals, while RubyGems, Bundler and Heddle are loaded. It would end the program otherwise,
# before that could tell the workers.
module Heddle
  # @private
  EARLY_SIGNALS = [] # rubocop:disable Style/MutableConstant -- filled by the handlers
  %w[TERM INT].each { |name| trap(name) { EARLY_SIGNALS << name } }
end

# Only this program loads it.
ENV["RUBYOPT"] = ENV.fetch("RUBYOPT", "").delete_prefix("-r#{__FILE__}").lstrip
