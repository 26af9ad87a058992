# frozen_string_literal: true

# Ruby loads this file before all others in a program that takes the place of another one (see Server::Successor). From
# then on a TERM is kept for Server::Signals, while RubyGems, Bundler and Heddle are loaded. Otherwise the TERM would
# end the program before it could stop the workers.
module Heddle
  # @private
  EARLY_SIGNALS = [] # rubocop:disable Style/MutableConstant -- filled by the handlers
  %w[TERM INT].each { |name| trap(name) { EARLY_SIGNALS << name } }
end

# Only this program must load the file. Programs that it starts inherit RUBYOPT, so the option is taken out.
ENV["RUBYOPT"] = ENV.fetch("RUBYOPT", "").delete_prefix("-r#{__FILE__}").lstrip
