# frozen_string_literal: true

class Visit < ApplicationRecord
  def self.edition = "first"

  # @return [String] what the server answers after 0.1 s, and for whom it was asked
  def self.question(number)
    with_connection { |one| "#{one.select_value("SELECT #{number} FROM pg_sleep(0.1)")} #{Current.user}" }
  end
end
