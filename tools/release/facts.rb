# frozen_string_literal: true

require_relative "../command"

module Tools
  module Release
    # What the files of the repository say about the version. Each method returns the problems, one line for each.
    class Facts
      GEMSPECS = %w[heddle.gemspec heddle-server/heddle-server.gemspec].freeze
      CHANGELOGS = %w[CHANGELOG.md heddle-server/CHANGELOG.md].freeze

      # @param root [String] the repository
      # @param tag [String, nil] of the release, such as "v0.1.0"; without one this is a rehearsal
      def initialize(root: ROOT, tag: nil)
        @root = root
        @tag = tag
      end

      # @return [String]
      def version = @version ||= read("lib/heddle/version.rb")[/VERSION = "([^"]+)"/, 1].to_s

      # Both gems have the same version, and the server depends on exactly this one.
      def versions
        found = []
        found << "version.rb: #{version.inspect} is no version" unless version.match?(/\A\d+\.\d+\.\d+(\.\w+)?\z/)
        found << "the tag is #{@tag}, the version #{version}" if @tag && @tag != "v#{version}"
        found + gemspecs
      end

      # The topmost entry is that of this version. For a release it has a date; before, it is "Unreleased" and names
      # the version.
      def changelogs
        CHANGELOGS.flat_map do |path|
          title, text = read(path).split(/^## /, 3)[1].to_s.split("\n", 2)
          found = entry_problems(title.to_s, text.to_s).map { |problem| "#{path}: #{problem}" }
          found << "#{path}: the entry of #{version} is empty" unless text.to_s.match?(/^- /)
          found
        end
      end

      # A release is made of what is committed, under a tag that its maker has signed.
      def sources
        return [] unless @tag

        found = []
        changed = git("status", "--porcelain")
        return ["this is no repository of git"] unless changed

        found << "not committed: #{changed.lines(chomp: true).join(", ")}" unless changed.empty?
        found << "#{@tag} is not the commit that is checked out" unless same_commit?
        found << "the signature of #{@tag} does not verify (git verify-tag #{@tag})" unless git("verify-tag", @tag)
        found
      end

      private

      def gemspecs
        specs = GEMSPECS.to_h { |path| [path, load_spec(path)] }
        others = specs.reject { |_, spec| spec.version.to_s == version }
        found = others.map { |path, spec| "#{path}: #{spec.version} in place of #{version}" }
        needed = specs.values.last.runtime_dependencies.find { |one| one.name == "heddle" }&.requirement.to_s
        found << "#{GEMSPECS.last}: needs heddle #{needed}, not = #{version}" if needed != "= #{version}"
        found
      end

      def entry_problems(title, text)
        dated = "[#{version}] - "
        return [] if title.start_with?(dated) && title.delete_prefix(dated).match?(/\A\d{4}-\d\d-\d\d\z/)
        return ["the topmost entry is #{title.inspect}, not #{dated}with the date"] if @tag || title != "[Unreleased]"
        return [] if text.lines.first(4).join.include?("This will be #{version}")

        ["[Unreleased] does not say \"This will be #{version}\""]
      end

      def same_commit?
        tagged = git("rev-parse", "--verify", "--quiet", "#{@tag}^{commit}")
        !tagged.nil? && tagged == git("rev-parse", "HEAD")
      end

      def git(*arguments) = Command.output("git", *arguments, chdir: @root)

      def read(path) = File.read(File.join(@root, path), encoding: "UTF-8")

      # In a process of its own: a gemspec loads the version, and a constant is loaded once.
      def load_spec(path)
        folder, name = File.split(File.join(@root, path))
        text = Command.output(RbConfig.ruby, "-e", <<~RUBY, name, chdir: folder)
          print Marshal.dump(Gem::Specification.load(ARGV.first))
        RUBY
        Marshal.load(text.to_s.b) # rubocop:disable Security/MarshalLoad -- it is our own
      rescue TypeError, ArgumentError
        raise Problem, "#{path} does not load"
      end
    end
  end
end
