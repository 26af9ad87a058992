# frozen_string_literal: true

require_relative "../lib/heddle/version"

Gem::Specification.new do |spec|
  spec.name = "heddle-server"
  spec.version = Heddle::VERSION
  spec.authors = ["the Heddle authors"]
  spec.summary = "A web server for Rack applications, with all connections in one thread"
  spec.description = <<~TEXT
    Serves Rack applications over HTTP/1.1 and HTTP/2 with Heddle: a task for each request, and none for an idle
    connection. Brings the command `heddle serve`, which runs one process or several.
  TEXT
  spec.license = "MIT"
  spec.metadata = { "rubygems_mfa_required" => "true" }
  spec.required_ruby_version = ">= 3.3.2"

  spec.add_dependency("heddle", Heddle::VERSION)
  spec.add_dependency("protocol-http1", "~> 0.30")
  spec.add_dependency("protocol-http2", "~> 0.29")
  spec.add_dependency("protocol-rack", "~> 0.15")
  spec.add_dependency("rack", ">= 2.2")

  # By glob, not by git: the gem can be built from an unpacked archive as well.
  patterns = %w[lib/**/*.rb sig/**/*.{rbs,yaml} guides/**/*.md *.md LICENSE]
  spec.files = patterns.flat_map { |pattern| Dir.glob(pattern, base: __dir__) }.sort
  spec.require_paths = ["lib"]
end
