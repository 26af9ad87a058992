# frozen_string_literal: true

module Tools
  # Which test files run on which Ruby.
  class TestSelection
    # The scheduler and what it does to Ruby's classes: on each Ruby. The other files test what is built on that.
    CORE = %r{\Atest/(contract|core_ext|faults|fuzz|hooks)/|\Atest/ractors_test\.rb\z}
    # What looks at the sources, or at programs that do not differ from Ruby to Ruby: on the first one alone, always.
    ONCE = %r{\Atest/(bench|cli/demo|docs|sig|tools)/|\Atest/(style|signals)_test\.rb\z|
              \Aheddle-server/test/(gem|server/public_api)_test\.rb\z}x

    # The folders of the tests of both gems.
    SUITES = %w[heddle-server/test test].freeze

    # What uses no server and no gem but the Gemfile's.
    PLAIN = Regexp.union(CORE, %r{\Atest/(tools|sig)/|\Atest/signals_test\.rb\z})

    # @param paths [Array<String>] files and folders that were named; if it is empty, the whole suite is meant
    # @param everything [Boolean] whether each Ruby runs all files
    def initialize(paths, everything: false)
      @files = find(paths)
      @everything = everything || paths.any?
    end

    # @return [TestSelection] of the same files, all of them on each Ruby
    def with_everything = dup.tap { |selection| selection.everything = true }

    # @return [Array<String>] for one of the Rubies
    def of(ruby, rubies)
      return @files if ruby == rubies.first

      @everything ? @files.grep_v(ONCE) : @files.grep(CORE)
    end

    # @return [Boolean] whether files of that Ruby use servers and other gems than the Gemfile's
    def products?(ruby, rubies) = of(ruby, rubies).any? { |file| !file.match?(PLAIN) }

    # @return [Integer] how many files a later Ruby does not run, which it would with --all
    def left_out = @everything ? 0 : @files.grep_v(ONCE).grep_v(CORE).size

    protected

    attr_writer :everything

    private

    def find(paths)
      roots = paths.empty? ? SUITES.map { |name| File.join(ROOT, name) } : paths.map { |path| File.expand_path(path) }
      files = roots.flat_map { |path| File.directory?(path) ? Dir.glob(File.join(path, "**/*_test.rb")) : [path] }
      raise Problem, "there is no test file in #{(paths.empty? ? SUITES : paths).join(", ")}" if files.empty?

      files.map { |path| path.delete_prefix("#{ROOT}/") }.uniq.sort
    end
  end
end
