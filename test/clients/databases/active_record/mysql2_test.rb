# frozen_string_literal: true

# bin/test: takes 25 s, 0.5 of a core

require_relative "../../../test_helper"
require "support/clients/active_record_case"
require "support/servers/mariadb"

contract "ActiveRecordMysql2" do
  extend TestSupport::ActiveRecordCase

  active_record "mysql2", driver: "mysql2",
                          server: TestSupport::Servers::Mariadb, username: "heddle", database: "heddle"
end
