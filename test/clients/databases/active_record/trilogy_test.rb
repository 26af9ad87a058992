# frozen_string_literal: true

# bin/test: takes 25 s, 0.5 of a core

require_relative "../../../test_helper"
require "support/clients/active_record_case"
require "support/servers/mariadb"

contract "ActiveRecordTrilogy" do
  extend TestSupport::ActiveRecordCase

  active_record "trilogy", driver: "trilogy",
                           server: TestSupport::Servers::Mariadb, username: "heddle", database: "heddle"
end
