# frozen_string_literal: true

require "pathname"
require "yard"

module Tools
  # The API reference: what YARD makes as .yardopts says, but the links of the guides lead to its pages.
  class Reference
    ROOT = Pathname(__dir__).parent

    # @param folder [String] where to make it
    def initialize(folder)
      @folder = Pathname(folder).expand_path
    end

    # @return [Boolean] without a warning?
    def make
      return false unless YARD::CLI::Yardoc.run("--fail-on-warning", "--output-dir", @folder.to_s)

      sources = Dir.chdir(ROOT) { Dir["*.md", "LICENSE", "{,heddle-server/}guides/*.md"] }
      @pages = sources.to_h { |source| [source, page_of(source)] }.select { |_, page| page.exist? }
      @pages.each { |source, page| page.write(linked(page.read, source)) }
      @folder.join("index.html").write(@pages.fetch("README.md").read)
      true
    end

    private

    def page_of(source) = @folder.join("file.#{File.basename(source, ".md")}.html")

    # YARD's own links lead to pages; those of the guides to files of the repository, or to a heading of the same file.
    def linked(html, source)
      html.gsub(/href="(?!\w+:)([^"#]*)(?:#([^"]*))?"/) do |link|
        path = $1
        heading = $2
        target = path.empty? ? source : Pathname(source).dirname.join(path).to_s
        next link if path.end_with?(".html", ".css", ".js") || !ROOT.join(target).exist?

        page = @pages[target]
        page ? %(href="#{page.basename}#{anchor(page, heading)}") : %(href="#{relative(target)}")
      end
    end

    def relative(target) = ROOT.join(target).relative_path_from(@folder)

    # YARD writes "Which_limit", where the guides say "#which-limit".
    def anchor(page, heading)
      return unless heading

      ids = page.read.scan(/ id="([^"]+)"/).flatten
      "##{ids.find { |id| id.downcase.delete("^a-z0-9") == heading.delete("^a-z0-9") } || heading}"
    end
  end
end
