# frozen_string_literal: true

require_relative "../support"

module Tools
  # Gems with compiled files for other platforms (`rake gem:native`).
  module Native
    # A platform that gets a gem with compiled files.
    #
    # name: of the gem. triple: as the compiler names it, with the oldest glibc or macOS that the gem runs on. cpu: as
    # RbConfig names it.
    Target = Struct.new(:name, :triple, :cpu, keyword_init: true) do
      # @return [String] as RubyGems of a Ruby on that platform names it, without a version
      def to_s = name

      # @return [String] the system: "linux", "darwin" or "freebsd"
      def system = name[/linux|darwin|freebsd/]

      # @return [String] how the name of an extension ends there
      def suffix = system == "darwin" ? "bundle" : "so"
    end

    # glibc 2.28 is that of Debian 10, RHEL 8 and Ubuntu 18.10. RubyGems 3.5 on musl prefers a gem for "x86_64-linux" to
    # one for "x86_64-linux-musl", and so the names of the others end with "gnu".
    TARGETS = [
      Target.new(name: "x86_64-linux-gnu", triple: "x86_64-linux-gnu.2.28", cpu: "x86_64"),
      Target.new(name: "aarch64-linux-gnu", triple: "aarch64-linux-gnu.2.28", cpu: "aarch64"),
      Target.new(name: "x86_64-linux-musl", triple: "x86_64-linux-musl", cpu: "x86_64"),
      Target.new(name: "aarch64-linux-musl", triple: "aarch64-linux-musl", cpu: "aarch64"),
      Target.new(name: "arm64-darwin", triple: "aarch64-macos.11.0-none", cpu: "aarch64"),
      Target.new(name: "x86_64-darwin", triple: "x86_64-macos.11.0-none", cpu: "x86_64")
    ].to_h { |target| [target.name, target.freeze] }.freeze

    # For these the sources are only compiled (`bin/build --check-platforms`).
    CHECKED = [
      *TARGETS.values_at("arm64-darwin", "x86_64-darwin", "x86_64-linux-musl"),
      Target.new(name: "x86_64-freebsd", triple: "x86_64-freebsd", cpu: "x86_64").freeze
    ].freeze

    module_function

    # @param name [String]
    # @return [Target]
    def target(name)
      TARGETS.fetch(name) { raise Problem, "#{name.inspect} is no platform: #{TARGETS.keys.join(", ")}" }
    end
  end
end
