# frozen_string_literal: true

require "rubygems/package"
require "zlib"
require_relative "../support"

module Tools
  module Release
    # Looks into a gem that was built.
    class Contents
      WANTED = %w[CHANGELOG.md LICENSE README.md].freeze

      # @param path [String] the gem
      # @param known [Array<String>] the files that git knows, beneath the folder of the gemspec
      def initialize(path, known)
        @name = File.basename(path)
        @known = known
        @package = Gem::Package.new(path)
        @spec = @package.spec
        @files = {}
        read_files(path)
      end

      # @return [Array<String>] one line for each
      def problems
        [*unlisted, *foreign, *lacking, *modes, *paths_of_this_machine].map { |problem| "#{@name}: #{problem}" }
      end

      private

      def compiled?(name) = name.end_with?(".so", ".bundle")

      def read_files(path)
        File.open(path, "rb") do |io|
          Gem::Package::TarReader.new(io).each do |entry|
            next unless entry.full_name == "data.tar.gz"

            Zlib::GzipReader.wrap(entry) { |data| read_data(data) }
          end
        end
      end

      def read_data(data)
        Gem::Package::TarReader.new(data).each do |entry|
          @files[entry.full_name] = [entry.header.mode & 0o7777, entry.read.to_s]
        end
      end

      def unlisted
        (@files.keys - @spec.files).map { |name| "#{name} is not in its list of files" } +
          (@spec.files - @files.keys).map { |name| "#{name} is in its list of files, but not there" }
      end

      # A file that git does not know was left in the folder by somebody.
      def foreign
        (@files.keys - @known).reject { |name| compiled?(name) && binary_gem? }.map { |name| "#{name} is not in git" }
      end

      def lacking
        wanted = WANTED + (binary_gem? ? [] : @known.grep(%r{\A(lib|ext|exe|sig)/})) + @known.grep(%r{\A(lib|exe|sig)/})
        found = (wanted.uniq - @files.keys).map { |name| "#{name} is missing" }
        found << "has no compiled file" if binary_gem? && @files.keys.none? { |name| compiled?(name) }
        found << "builds an extension at its installation" if binary_gem? && @spec.extensions.any?
        found
      end

      def modes
        @files.filter_map do |name, (mode, _)|
          wanted = @spec.executables.include?(File.basename(name)) && name.start_with?(@spec.bindir) ? 0o755 : 0o644
          format("%s has mode %o", name, mode) if mode != wanted
        end
      end

      def paths_of_this_machine
        @files.filter_map { |name, (_, text)| "#{name} has the path #{ROOT}" if text.b.include?(ROOT.b) }
      end

      def binary_gem? = @spec.platform != Gem::Platform::RUBY
    end
  end
end
