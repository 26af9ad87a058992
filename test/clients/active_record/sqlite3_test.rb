# frozen_string_literal: true

# bin/test: takes 10 s, 0.5 of a core

require_relative "../../test_helper"
require "support/active_record_case"

contract "ActiveRecordSqlite3" do
  extend TestSupport::ActiveRecordCase

  # Before ActiveRecord 8 SQLite itself sleeps until the lock is free: no other task can free it.
  active_record "sqlite3", driver: "sqlite3", versions: ["8"], timeout: 5000
end
