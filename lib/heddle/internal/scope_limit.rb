# frozen_string_literal: true

module Heddle
  # Ends the block of a Heddle.scope from outside, at its deadline or by Scope#cancel, in C: see Scope::Limited.
  class ScopeLimit; end # rubocop:disable Lint/EmptyClass -- its methods are in C
  private_constant :ScopeLimit
end
