# frozen_string_literal: true

require_relative "../test_helper"
require "support/examples"
require "support/site"

contract "HealthChecksExample" do
  include TestSupport::Examples

  def teardown
    @site&.close
    super
  end

  def test_reports_each_site_and_sums_up
    @site = TestSupport::Site.new do |request|
      case request.path
      when "/well" then "fine"
      when "/ill" then [503, "not now"]
      else sleep
      end
    end
    urls = %w[/well /ill /slow].map { |path| @site.url(path) }
    program = start_example("health_checks", "--every", 0.5, "--timeout", 0.3, *urls)
    heard(program, %r{(?:^ok   \S+/well: 0\.\d+ s\n.*?){2}}m, :out)
    heard(program, %r{(?:^FAIL \S+/ill: 503 "Status" \(Net::HTTPFatalError\)\n.*?){2}}m, :out)
    heard(program, %r{(?:^FAIL \S+/slow: not done after 0\.3 s \(Heddle::TimeoutError\)\n.*?){2}}m, :out)
    program.signal(:INT)

    assert_predicate(ended(program), :success?)
    assert_equal("", program.err)
    assert_match(%r{/well: (\d+) of \1 checks passed, 0\.\d+ s on average\n}, program.out)
    assert_match(%r{/slow: 0 of \d+ checks passed, no answer\n\z}, program.out)
  end
end
