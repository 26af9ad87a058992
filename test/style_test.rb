# frozen_string_literal: true

# bin/test: takes 4 s, 0.8 of a core

require "minitest/autorun"
require "rbconfig"

# The rules that no linter knows: sizes, layers, names, and what must not be in the repository.
class StyleTest < Minitest::Test
  ROOT = File.expand_path("..", __dir__)
  # Made by tools, ignored by git.
  FOREIGN = %r{\A(tmp|build|doc|pkg|vendor|coverage)/}
  TEXT = %w[.rb .rbs .c .h .sh .md .yml .yaml .txt .gemspec].freeze
  LINES = 600
  README_LINES = 250
  WIDTH = 120
  FUNCTION_LINES = 70
  # The folders of the extension, each with what it may include. core/ and os/ do not know Ruby, so the compiler proves
  # that nothing there calls Ruby without the GVL, and plain C programs can test them.
  LAYERS = { "core" => %w[core], "os" => %w[core os], "ruby" => %w[core ruby], "fibers" => %w[core os ruby fibers],
             "io" => %w[core os ruby fibers io], "hooks" => %w[core os ruby fibers io hooks],
             "core_ext" => %w[core os ruby fibers io hooks core_ext] }.freeze
  FOLDER = 25 # files; a .c and its .h count once
  TESTS = %r{\A(?:heddle-server/)?test/}

  def test_files_are_short
    long = sources.reject { |name| name == "CHANGELOG.md" }
      .filter_map { |name| "#{name}: #{lines(name).size}" if lines(name).size > LINES }

    assert_empty(long, "split by subject what is longer than #{LINES} lines")
  end

  def test_readme_is_short
    skip("no README yet") unless file?("README.md")

    assert_operator(lines("README.md").size, :<=, README_LINES, "move parts of the README to guides/")
  end

  def test_lines_are_narrow_and_clean
    bad = sources.reject { |name| name.end_with?(".md") }.flat_map do |name|
      lines(name).filter_map.with_index(1) do |line, number|
        "#{name}:#{number}" if line.chomp.size > WIDTH || line.match?(/[ \t]+$|\t.*\S/) || line.end_with?("\r\n")
      end
    end

    assert_empty(bad, "wider than #{WIDTH}, a tab, or space at the end")
  end

  def test_files_end_with_a_newline
    assert_empty(sources.reject { |name| read(name).empty? || read(name).end_with?("\n") })
  end

  def test_strings_are_frozen
    ruby = sources.select { |name| ruby?(name) }
    bad = ruby.reject { |name| lines(name).first(3).include?("# frozen_string_literal: true\n") }

    assert_empty(bad)
    assert_operator(ruby.size, :>, 20, "the search for Ruby files does not work")
  end

  # Whether another file has loaded them depends on the order of the tests.
  RARELY_LOADED = { "Etc" => "etc", "Fcntl" => "fcntl", "Open3" => "open3", "PTY" => "pty", "Ripper" => "ripper",
                    "StringIO" => "stringio", "Tempfile" => "tempfile" }.freeze

  def test_files_require_what_they_name
    bad = sources.grep(%r{\A(bench|(heddle-server/)?test|tools)/.*\.rb\z}).flat_map do |name|
      code = lines(name).grep_v(/^\s*#/).join
      RARELY_LOADED.filter_map do |constant, library|
        used = code.match?(/(?<![\w:"])#{constant}(?:\.|::)\w/)
        "#{name}: #{library}" if used && !code.include?(%(require "#{library}"))
      end
    end

    assert_empty(bad)
  end

  # RuboCop does not know all of the compiler's warnings.
  def test_ruby_compiles_without_warnings
    heard = []
    collector = Module.new { define_method(:warn) { |message, **| heard << message } }
    Warning.singleton_class.prepend(collector)
    verbose = $VERBOSE
    $VERBOSE = true
    sources.select { |name| ruby?(name) }.each { |name| RubyVM::InstructionSequence.compile_file(path(name)) }

    assert_empty(heard)
  ensure
    $VERBOSE = verbose
    collector.remove_method(:warn)
  end

  def test_c_files_say_what_they_are_for
    assert_empty(c_files.reject { |name| lines(name).first.start_with?("/*") }, "no comment at the top")
  end

  def test_c_functions_fit_on_a_screen
    long = c_files.flat_map do |name|
      starts = nil
      lines(name).filter_map.with_index(1) do |line, number|
        starts = number if line.start_with?("{") || line.match?(/\A\w.*\)\s*\{$/)
        size = number - starts if starts && line.start_with?("}")
        "#{name}:#{starts} (#{size} lines)" if size && size > FUNCTION_LINES
      end
    end

    assert_empty(long, "longer than #{FUNCTION_LINES} lines")
  end

  def test_layers_of_the_extension
    bad = c_files.flat_map do |name|
      allowed = LAYERS.fetch(layer(name))
      read(name).scan(/^\s*#\s*include\s+(?:<(ruby)[^>]*>|"([^"]+)")/).filter_map do |ruby, own|
        included = ruby || (own.include?("/") ? own[/\w+/] : layer(name))
        "#{name} includes #{own || "Ruby's headers"}" unless allowed.include?(included)
      end
    end

    assert_empty(bad)
    assert_equal(LAYERS.keys.sort, c_files.map { |name| layer(name) }.uniq.sort)
  end

  # An include names the folder, if it is not the file's own.
  def test_includes_name_their_folder
    bad = c_files.flat_map do |name|
      read(name).scan(/^#include "([^"]+)"/).flatten.map { |own| [name, own] }
    end
    bad.reject! do |name, own|
      folder = own.include?("/") ? File.dirname("ext/heddle/#{own}") : File.dirname(name)
      file?("#{folder}/#{File.basename(own)}") && own.include?("/") == (folder != File.dirname(name))
    end

    assert_empty(bad)
  end

  def test_folders_are_small
    files = c_files.map { |name| name.sub(/\.[ch]\z/, "") }.uniq
    files += Dir.glob("{heddle-server/lib,tools}/**/*.rb", base: ROOT)
    sizes = files.map { |name| File.dirname(name) }.tally

    assert_empty(sizes.select { |_, size| size > FOLDER })
  end

  # A file may use others, and none of these may use it in turn. Its header may name their types.
  def test_c_files_form_no_circle
    used = c_files.grep(/\.c\z/).to_h do |name|
      own = File.basename(name, ".c")
      [own, read(name).scan(/^#include "([^"]+)"/).map { |path,| File.basename(path, ".h") } - [own]]
    end
    until (bottom = used.reject { |_, others| others.intersect?(used.keys) }.keys).empty?
      used = used.except(*bottom)
    end

    assert_empty(used.transform_values { |others| others & used.keys }, "these C files use each other in a circle")
    assert_operator(c_files.size, :>=, 100, "the search for C files does not work")
  end

  # mkmf puts all objects into one folder.
  def test_c_files_differ_in_name
    names = c_files.grep(/\.c\z/).map { |name| File.basename(name) }

    assert_equal(names.uniq, names)
  end

  # Time is read in one place, so that tests can replace it.
  def test_one_clock
    stray = c_files.reject { |name| File.basename(name, ".*") == "clock" }
      .select { |name| read(name).match?(/\b(clock_gettime|gettimeofday|time)\s*\(/) }

    assert_empty(stray)
  end

  # Questions about the version of Ruby are asked in one Ruby file and in one C file, by what that Ruby does.
  def test_one_place_for_versions
    asked = /\bRUBY_(?:API_)?VERSION(?:_\w+)?\b(?!\}|,)/
    homes = ["lib/heddle/internal/ruby_features.rb", "ext/heddle/ruby/compat.h"]
    found = sources.grep(%r{\A(heddle-server/lib|lib|ext)/}).select { |name| read(name).match?(asked) }

    assert_equal(homes.sort, found.sort)
  end

  # What a test file says to bin/test is understood.
  def test_test_files_say_how_long_they_take
    said = sources.grep(/#{TESTS}.*_test\.rb\z/).flat_map { |name| read(name).scan(%r{^# bin/test: .*}) }
    understood = %r{\A# bin/test: (takes \d+ s, (\d+\.\d+ of a|\d+) core\z|not forked\b)}

    assert_empty(said.grep_v(understood))
    assert_operator(said.size, :>, 20)
  end

  # bin/test runs the files *_test.rb in these folders; a test elsewhere would never run.
  def test_every_test_is_run
    ruby = sources.grep(/#{TESTS}.*\.rb\z/)
    stray = ruby.grep_v(%r{_test\.rb\z|#{TESTS}(support/|test_helper\.rb\z)})
      .select { |name| read(name).match?(/^\s*def test_\w/) }
      .reject { |name| loaded_by_a_test?(name, ruby) }

    assert_empty(stray)
    assert_empty(sources.grep(/_test\.(rb|c)\z/).grep_v(/#{TESTS}/), "a test outside of test/")
  end

  def test_no_machine_is_named
    bad = sources.flat_map do |name|
      lines(name).filter_map.with_index(1) do |line, number|
        "#{name}:#{number}: #{line.strip}" if line.match?(machine_names) && name != "test/style_test.rb"
      end
    end

    assert_empty(bad, "a path of one machine, or a registry's host")
  end

  def test_nothing_is_left_to_do
    marks = /\b(#{%w[TO FIX X].zip(%w[DO ME XX]).map(&:join).join("|")})\b/
    bad = sources.reject { |name| name == "test/style_test.rb" }.select { |name| read(name).match?(marks) }

    assert_empty(bad)
  end

  def test_commands_can_be_started
    commands = Dir.glob("{bin,exe}/*", base: ROOT) + [".ci/run"]

    assert_empty(commands.reject { |name| File.executable?(path(name)) })
    assert_empty(commands.reject { |name| lines(name).first.start_with?("#!") })
  end

  def test_shell_scripts_pass_shellcheck
    folders = ENV.fetch("PATH").split(":")
    skip("shellcheck is not installed") if folders.none? { |folder| File.executable?(File.join(folder, "shellcheck")) }
    scripts = [*Dir.glob("bin/*", base: ROOT), ".ci/run", *sources.grep(/\.sh\z/)]
      .select { |name| name.end_with?(".sh") || lines(name).first.match?(/\bsh$|\bbash$/) }
    output = IO.popen(["shellcheck", "-x", *scripts, { chdir: ROOT, err: %i[child out] }], &:read)

    assert_empty(output)
    assert_operator(scripts.size, :>=, 5)
  end

  def test_changelog = assert_changelog("CHANGELOG.md")

  def test_changelog_of_the_server = assert_changelog("heddle-server/CHANGELOG.md")

  def assert_changelog(name)
    titles = lines(name).grep(/\A## /)

    assert_equal("# Changelog\n", lines(name).first)
    assert_empty(titles.grep_v(/\A## \[(Unreleased\]|\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d)$/))
    refute_empty(titles)
    assert_includes(["Unreleased", version], titles.first[/\A## \[([^\]]+)/, 1],
                    "the topmost entry is not this version's")
    dates = titles.filter_map { |title| title[/\d{4}-\d\d-\d\d/] }

    assert_equal(dates.sort.reverse, dates, "newest first")
  end

  def test_gem_is_complete
    spec = gem_specification("heddle.gemspec")

    assert_empty(spec.runtime_dependencies, "what ships uses Ruby's default gems alone")
    shipped = sources.grep(%r{\A(lib|ext|sig)/.*\.(rb|c|h|rbs|yaml)\z}) + Dir.glob("exe/*", base: ROOT) + ["LICENSE"]
    shipped += Dir.glob("examples/**/*", File::FNM_DOTMATCH, base: ROOT).select { |name| File.file?(path(name)) }

    assert_empty(shipped - spec.files)
    assert_empty(spec.files.grep(/\.so\z|\Atest|\Abench|\Atools|\Aheddle-server/))
  end

  def test_gem_of_the_server_is_complete
    spec = gem_specification("heddle-server/heddle-server.gemspec")
    shipped = sources.filter_map { |name| name[%r{\Aheddle-server/((?:lib|sig|guides)/.*|[A-Z]+(\.md)?\z)}, 1] }

    assert_equal("= #{version}", spec.runtime_dependencies.find { |one| one.name == "heddle" }.requirement.to_s)
    assert_empty(shipped - spec.files)
    assert_empty(spec.files.grep(/\Atest/))
    assert_equal(read("LICENSE"), read("heddle-server/LICENSE"))
  end

  private

  def gem_specification(path)
    folder, name = File.split(path(path))
    spec = Dir.chdir(folder) { Gem::Specification.load(name) }

    assert_equal(version, spec.version.to_s)
    assert_equal("true", spec.metadata["rubygems_mfa_required"])
    spec
  end

  def path(name) = File.join(ROOT, name)

  def file?(name) = File.file?(path(name))

  def read(name) = contents[name] ||= File.read(path(name), encoding: "UTF-8")

  def lines(name) = read(name).lines

  def contents = @contents ||= {}

  # Every text file of the project, without asking git: an unpacked archive has none.
  def sources
    @sources ||= Dir.glob("**/*", File::FNM_DOTMATCH, base: ROOT).grep_v(FOREIGN)
      .reject { |name| name.start_with?(".git/") || name == "Gemfile.lock" }.select { |name| text?(name) }.sort
  end

  def text?(name)
    return false unless file?(name)

    TEXT.include?(File.extname(name)) || %w[Gemfile Rakefile LICENSE .gitignore].include?(name) ||
      name.match?(%r{\A(bin|exe|\.ci)/[^/]+\z})
  end

  def ruby?(name)
    name.end_with?(".rb", ".gemspec", "file") || (text?(name) && lines(name).first.to_s.match?(/\A#!.*\bruby$/))
  end

  def c_files = sources.grep(%r{\Aext/.*\.[ch]\z})

  def layer(name) = name[%r{\Aext/heddle/(\w+)/}, 1]

  def version = read("lib/heddle/version.rb")[/VERSION = "([^"]+)"/, 1]

  def loaded_by_a_test?(name, files)
    base = File.basename(name, ".rb")
    files.grep(/_test\.rb\z/).any? { |test| read(test).match?(/require(_relative)? "[^"]*\b#{base}"/) }
  end

  # Put together here so that this file does not name them.
  def machine_names
    folders = %w[root home work].map { |name| "#{name}/" }.join("|")
    hosts = [%w[deb debian org], %w[rubygems org], %w[security debian org]].map { |parts| parts.join('\.') }.join("|")
    Regexp.new("(?<![\\w.~*})>-])/(?:#{folders})|\\b(?:#{hosts})\\b")
  end
end
