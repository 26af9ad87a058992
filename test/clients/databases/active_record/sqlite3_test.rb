# frozen_string_literal: true

# bin/test: takes 12 s, 0.5 of a core

require_relative "../../../test_helper"
require "support/clients/active_record_case"

contract "ActiveRecordSqlite3" do
  extend TestSupport::ActiveRecordCase

  active_record "sqlite3", driver: "sqlite3", timeout: 5000
end
