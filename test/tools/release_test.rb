# frozen_string_literal: true

# bin/test: takes 10 s, 0.8 of a core

require_relative "../test_helper"
require "digest"
require "fileutils"
require "stringio"
require_relative "../../tools/release/canary"
require_relative "../../tools/console"
require_relative "../../tools/release/check"

# Before a release: what the repository says of its version, and the gems that it makes.
class ReleaseTest < HeddleTest
  VERSION = "7.8.9"
  FILES = %w[heddle.gemspec heddle-server/heddle-server.gemspec].freeze

  # A repository with nothing but versions.
  def setup
    super
    @root = tempdir
    FILES.each { |path| copy(path) }
    write("lib/heddle/version.rb", "module Heddle\n  VERSION = \"#{VERSION}\"\nend\n")
    %w[CHANGELOG.md heddle-server/CHANGELOG.md].each { |path| write(path, changelog("[#{VERSION}] - 2030-01-31")) }
  end

  def copy(path)
    FileUtils.mkdir_p(File.dirname(File.join(@root, path)))
    FileUtils.cp(File.join(ROOT, path), File.join(@root, path))
  end

  def write(path, text)
    FileUtils.mkdir_p(File.dirname(File.join(@root, path)))
    File.write(File.join(@root, path), text)
  end

  def changelog(title, first = "") = "# Changelog\n\n## #{title}\n\n#{first}\n\n### Added\n\n- A thing.\n"

  def facts(tag: nil) = Tools::Release::Facts.new(root: @root, tag: tag)

  def test_all_is_right
    assert_empty(facts(tag: "v#{VERSION}").versions)
    assert_empty(facts(tag: "v#{VERSION}").changelogs)
    assert_empty(facts.sources)
  end

  def test_the_tag_is_that_of_the_version
    assert_equal(["the tag is v7.8.8, the version #{VERSION}"], facts(tag: "v7.8.8").versions)
  end

  def test_a_server_that_needs_another_version
    path = "heddle-server/heddle-server.gemspec"
    write(path, File.read(File.join(@root, path)).sub('add_dependency("heddle", Heddle::VERSION)',
                                                      'add_dependency("heddle", "7.0.0")'))

    assert_match(/needs heddle = 7.0.0, not = #{VERSION}/, facts.versions.join)
  end

  def test_a_version_that_is_none
    write("lib/heddle/version.rb", "module Heddle\n  VERSION = \"7.8\"\nend\n")

    assert_includes(facts.versions, 'version.rb: "7.8" is no version')
  end

  # Before the day of the release the entry has no date yet.
  def test_a_rehearsal_needs_no_date
    write("CHANGELOG.md", changelog("[Unreleased]", "This will be #{VERSION}, the first release."))

    assert_empty(facts.changelogs)
    assert_match(/\ACHANGELOG\.md: the topmost entry is "\[Unreleased\]"/, facts(tag: "v#{VERSION}").changelogs.join)
  end

  def test_a_changelog_of_another_version
    write("CHANGELOG.md", changelog("[Unreleased]", "This will be 7.9.0."))
    write("heddle-server/CHANGELOG.md", "# Changelog\n\n## [#{VERSION}] - 2030-01-31\n")

    assert_equal(["CHANGELOG.md: [Unreleased] does not say \"This will be #{VERSION}\"",
                  "heddle-server/CHANGELOG.md: the entry of #{VERSION} is empty"], facts.changelogs)
  end

  # Signed with a key of SSH, as GitHub verifies it.
  def test_the_tag_is_signed
    skip("git and ssh-keygen are needed") unless %w[git ssh-keygen].all? { |name| Tools.which(name) }
    key = File.join(tempdir, "key")
    system("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key, exception: true)
    File.write("#{key}.allowed", "maker@example.com #{File.read("#{key}.pub")}")
    git("init", "-q")
    { "user.name" => "Maker", "user.email" => "maker@example.com", "gpg.format" => "ssh", "commit.gpgsign" => "false",
      "user.signingkey" => key, "gpg.ssh.allowedSignersFile" => "#{key}.allowed" }.each { |pair| git("config", *pair) }
    git("add", ".")
    git("commit", "-q", "-m", "all")
    git("tag", "-a", "-m", "without", "v1.0.0")
    git("tag", "-s", "-m", "signed", "v#{VERSION}")

    assert_empty(facts(tag: "v#{VERSION}").sources)
    assert_equal(["the signature of v1.0.0 does not verify (git verify-tag v1.0.0)"], facts(tag: "v1.0.0").sources)
    write("more", "text")

    assert_equal(["not committed: ?? more"], facts(tag: "v#{VERSION}").sources)
    git("add", ".")
    git("commit", "-q", "-m", "more")

    assert_equal(["v#{VERSION} is not the commit that is checked out"], facts(tag: "v#{VERSION}").sources)
  end

  def git(*arguments) = system("git", *arguments, chdir: @root, exception: true)

  # Times, modes and umask of the machine are not in it.
  def test_a_gem_has_the_same_bytes_again
    first = Tools::GemFile.new("heddle-server/heddle-server.gemspec").build(tempdir)
    former = File.umask(0o077)
    second = Tools::GemFile.new("heddle-server/heddle-server.gemspec").build(tempdir)

    assert_equal(Digest::SHA256.file(first), Digest::SHA256.file(second))
    assert_equal(Gem::Package.new(first).spec.date.to_i, Integer(Tools::GemFile.epoch, 10) / 86_400 * 86_400)
  ensure
    File.umask(former) if former
  end

  def test_what_is_in_a_gem
    path = "heddle-server/heddle-server.gemspec"
    gem = Tools::GemFile.new(path)
    known = gem.spec.files

    assert_empty(Tools::Release::Contents.new(gem.build(tempdir), known).problems)
    problems = Tools::Release::Contents.new(gem.build(tempdir), known - ["README.md"] + ["lib/heddle/lost.rb"]).problems

    assert_equal([": README.md is not in git", ": lib/heddle/lost.rb is missing"],
                 problems.map { |line| line.delete_prefix("heddle-server-#{Heddle::VERSION}.gem") })
  end

  def test_a_path_of_the_machine_in_a_gem
    binary = File.join(tempdir, "heddle_native.so")
    File.write(binary, "an assertion in #{ROOT}/ext/heddle/core/wait.c")
    gem = Tools::GemFile.new("heddle.gemspec")
    known = gem.spec.files
    gem.compiled("x86_64-linux", { "lib/heddle/3.3.0/heddle_native.so" => binary }, [">= 3.3.2", "< 3.4.dev"])

    assert_equal(["heddle-#{Heddle::VERSION}-x86_64-linux.gem: lib/heddle/3.3.0/heddle_native.so has the path #{ROOT}"],
                 Tools::Release::Contents.new(gem.build(tempdir), known).problems)
  end

  # A new patch release of Ruby may have moved the members of a struct.
  def test_the_canary_names_the_places_that_were_not_found
    canary = Tools::Canary.new(RbConfig.ruby, console: Tools::Console.new(out: StringIO.new))
    names = Tools::Canary::PLACES

    assert_empty(names - Heddle.patches.map { |patch| patch.name.to_s })
    assert_empty(canary.lost_places("patches" => { "active" => names + ["other"] }))
    assert_equal(["match_apart"],
                 canary.lost_places("patches" => { "active" => names - ["match_apart"],
                                                   "not_possible" => ["match_apart"] }))
  end
end
