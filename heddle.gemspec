# frozen_string_literal: true

require_relative "lib/heddle/version"

Gem::Specification.new do |spec|
  spec.name = "heddle"
  spec.version = Heddle::VERSION
  spec.authors = ["the Heddle authors"]
  spec.summary = "Ordinary, blocking Ruby network code, thousands of operations at once on one thread"
  spec.description = <<~TEXT
    A fiber scheduler written in C (io_uring and epoll) and a small API for
    structured concurrency. Net::HTTP, OpenSSL, IO.popen, Queue, Mutex, sleep
    and the database clients run concurrently without a change to their code.
  TEXT
  spec.license = "MIT"
  spec.metadata = { "rubygems_mfa_required" => "true" }

  # 3.3.0 and 3.3.1 make blocking fibers in rb_fiber_new.
  spec.required_ruby_version = ">= 3.3.2"

  # By glob, not by git: the gem can be built from an unpacked archive as well.
  patterns = %w[lib/**/*.rb ext/**/*.{rb,c,h} sig/**/*.{rbs,yaml} exe/* examples/**/*.* guides/**/*.md *.md LICENSE]
  patterns << "examples/deployment/{.dockerignore,Containerfile}"
  spec.files = patterns.flat_map { |pattern| Dir.glob(pattern, base: __dir__) }.sort
  spec.bindir = "exe"
  spec.executables = ["heddle"]
  spec.extensions = ["ext/heddle/extconf.rb"]
  spec.require_paths = ["lib"]
end
