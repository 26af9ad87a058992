# frozen_string_literal: true

# bin/test: takes 20 s, 0.7 of a core

require_relative "../test_helper"
require "support/solid_queue_case"

# The same with a database that has no SKIP LOCKED.
contract "SolidQueueSqlite" do
  extend TestSupport::SolidQueueCase

  solid_queue "sqlite3", count: 20
end
