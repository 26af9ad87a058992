# frozen_string_literal: true

require "timeout"
require_relative "internal/replace"

module Heddle
  # Loads all patches; see replace.rb.
  #
  # @private
  module CoreExt
    Patches.load(Patches.all.reject { |patch| patch.places.empty? })
    replacements
  end
end

require_relative "would_block"
