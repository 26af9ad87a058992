# frozen_string_literal: true

require_relative "../test_helper"

contract "Sleep" do
  def test_returns_whole_seconds
    assert_equal(0, reactor { sleep(0.01) })
    assert_equal(0, reactor { sleep(0) })
    assert_equal(1, reactor { sleep(0.7) })
  end

  def test_never_early
    reactor do
      [0.001, 0.01, 0.05, 0.1].each do |duration|
        assert_operator(elapsed { sleep(duration) }, :>=, duration)
      end
    end
  end
end
