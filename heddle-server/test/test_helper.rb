# frozen_string_literal: true

# The tests of heddle-server use Heddle's own helper and support.
$LOAD_PATH.unshift(__dir__) unless $LOAD_PATH.include?(__dir__)
require_relative "../../test/test_helper"
