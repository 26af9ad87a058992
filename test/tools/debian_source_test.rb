# frozen_string_literal: true

require_relative "../test_helper"

# Where bin/setup fetches Ruby's source from.
class DebianSourceTest < HeddleTest
  SCRIPT = <<~RUBY
    require "./tools/setup/apt"
    require "./tools/rubies/private_apt"
    puts Tools::PrivateApt.mirrors
  RUBY
  ROOT = File.expand_path("../..", __dir__)

  def mirrors(*prefix)
    outcome = run_command(*prefix, RbConfig.ruby, "-e", SCRIPT, chdir: ROOT)

    assert_predicate(outcome, :success?, outcome.err)
    outcome.out.lines(chomp: true)
  end

  def setup
    super
    skip("no apt here") unless File.executable?("/usr/bin/apt-get")
  end

  def test_mirrors_are_those_of_the_machine
    assert_match(%r{\A\w[\w+]*:/}, mirrors.first)
  end

  # Most container images are so: apt has never been updated.
  def test_mirrors_are_known_where_apt_has_no_lists
    skip("only root can mount") unless Process.euid.zero?
    empty = 'mount -t tmpfs none /var/lib/apt/lists && exec "$@"'

    assert_equal(mirrors, mirrors("unshare", "--mount", "sh", "-c", empty, "sh"))
  end
end
