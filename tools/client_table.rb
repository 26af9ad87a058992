# frozen_string_literal: true

require "json"

module Tools
  # The table of guides/clients.md, made of what the tests of clients have measured
  # (test/support/clients/client_figures.rb).
  class ClientTable
    GUIDE = File.expand_path("../guides/clients.md", __dir__)
    PLACE = %r{(?<=<!-- bin/rake clients -->\n).*?(?=<!-- end -->)}m
    HEADER = ["Client", "Version", "Cooperates", "50 answers at once", "Others wait", "Its own limit raises",
              "After a cancel", "Closed while it waits"].freeze

    # Who blocks for longer than this, in seconds, cooperates in part only: the others do not run, and nobody computes.
    BLOCKED = 0.1

    # Who takes longer for what takes 0.2 s has not done all of it at the same time.
    TOOK = 1.0

    # @param lines [Array<String>] JSON, one figure each
    def initialize(lines)
      @figures = lines.map { |line| JSON.parse(line, symbolize_names: true) }
    end

    # @return [String] Markdown
    def to_s
      rows = @figures.group_by { |one| one[:title] }.sort_by { |title, _| title.downcase }.map { |one| row(*one) }
      [HEADER, HEADER.map { "---" }, *rows].map { |cells| "| #{cells.join(" | ")} |\n" }.join
    end

    # Puts the table into the guide.
    # @return [void]
    def write
      text = File.read(GUIDE)
      raise Problem, "#{GUIDE} has no place for the table" unless text.match?(PLACE)

      File.write(GUIDE, text.sub(PLACE) { to_s })
    end

    private

    def row(title, figures)
      took, hold, blocked = %i[took hold blocked].map { |key| median(figures.filter_map { |one| one[key] }) }
      holds = figures.filter_map { |one| one[:holds] }.uniq.sort
      [title, figures.filter_map { |one| one[:version] }.uniq.sort.join(", "), verdict(took, blocked, holds),
       seconds(took), seconds(hold), *%i[timeout cancel close].map { |key| words(figures, key) }]
    end

    def median(numbers) = numbers.sort[numbers.size / 2]

    # @param holds [Array<String>] calls that were measured by themselves, and keep the others from running
    def verdict(took, blocked, holds)
      return "partly, not while #{holds.join(" or ")}" unless holds.empty?
      return "" unless took
      return "no" if took > TOOK && blocked > BLOCKED

      took > TOOK || blocked > BLOCKED ? "partly" : "fully"
    end

    def seconds(number) = number ? format("%.2f s", number) : ""

    # In the order of how often it was seen.
    def words(figures, key)
      seen = figures.select { |one| one.key?(key) }.map { |one| one[key] }.tally.sort_by { |_, count| -count }
      seen.map { |word, _| word ? word.gsub(/[A-Z]\w*(?:::\w+)*/) { "`#{_1}`" } : "it has none" }.join(" or ")
    end
  end
end
