# frozen_string_literal: true

# bin/test: takes 25 s, 0.5 of a core

require_relative "../../../test_helper"
require "support/clients/active_record_case"
require "support/servers/postgres"

contract "ActiveRecordPostgresql" do
  extend TestSupport::ActiveRecordCase

  active_record "postgresql", driver: "pg",
                              server: TestSupport::Servers::Postgres, username: "heddle", database: "postgres"
end
