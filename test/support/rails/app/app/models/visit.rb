# frozen_string_literal: true

class Visit < ApplicationRecord
  def self.edition = "first"

  GATE = 7 # a lock of the database: the test may hold it

  # @return [String] what the server answers after 0.1 s, when the gate is open, and for whom it was asked
  def self.question(number)
    sql = "SELECT #{number} FROM pg_sleep(0.1), pg_advisory_xact_lock_shared(#{GATE})"
    with_connection { |one| "#{one.select_value(sql)} #{Current.user}" }
  end
end
