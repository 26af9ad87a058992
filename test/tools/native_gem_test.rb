# frozen_string_literal: true

# bin/test: takes 10 s, 0.8 of a core

require_relative "../test_helper"
require "rubygems/package"
require "stringio"
require_relative "../../tools/native/build"
require_relative "../../tools/release/bare_install"

# The gems with compiled files (bin/rake gem:native): what is in them, who gets them, and that they need no compiler.
# They are compiled by zig, which is large, so no test does that.
class NativeGemTest < HeddleTest
  NATIVE = Tools::Native
  CONFIG = <<~C
    #ifndef INCLUDE_RUBY_CONFIG_H
    #define INCLUDE_RUBY_CONFIG_H 1
    #define HAVE_STDIO_H 1
    #define HAVE_SYS_EPOLL_H 1
    #define HAVE_ONLY_HERE_H 1
    #define SIZEOF_LONG 8
    #define SIZEOF_VOIDP 8
    #define COROUTINE_H "coroutine/amd64/Context.h"
    #define SET_CURRENT_THREAD_NAME(name) pthread_setname_np(pthread_self(), name)
    #define RUBY_PLATFORM "x86_64-linux"
    #endif /* INCLUDE_RUBY_CONFIG_H */
  C

  def header(platform = "aarch64-linux-musl", text = CONFIG) = NATIVE::ConfigHeader.new(text, platform).to_s

  # What the preprocessor makes of the header, with `check` behind it.
  def preprocess(text, check)
    compiler = RbConfig::CONFIG["CC"].split.first
    skip("no compiler here") unless Tools.which(compiler)
    path = File.join(tempdir, "check.c")
    File.write(path, "#{text}\n#{check}\n")
    run_command(compiler, "-E", "-P", path)
  end

  def test_config_h_names_the_target
    assert_includes(header, '#define RUBY_PLATFORM "aarch64-linux-musl"')
    refute_match(/COROUTINE_H|SET_CURRENT_THREAD_NAME/, header)
    assert_match(/\A#ifndef.*^#endif.*\n\z/m, header)
  end

  def test_config_h_has_the_headers_that_the_target_has
    outcome = preprocess(header, <<~C)
      #if defined(HAVE_STDIO_H) && defined(HAVE_SYS_EPOLL_H) && !defined(HAVE_ONLY_HERE_H)
      right
      #endif
    C

    assert_predicate(outcome, :success?, outcome.err)
    assert_includes(outcome.out, "right")
  end

  def test_config_h_refuses_another_size
    outcome = preprocess(header("armv7-linux", CONFIG.sub("SIZEOF_LONG 8", "SIZEOF_LONG 4")), "")

    refute_predicate(outcome, :success?)
    assert_match(/#error SIZEOF_LONG/, outcome.err)
  end

  # Ruby's own header, with the compiler of this machine.
  def test_config_h_of_this_ruby
    folder = RbConfig::CONFIG.fetch("rubyarchhdrdir")
    outcome = preprocess(header(RUBY_PLATFORM, File.read(File.join(folder, "ruby/config.h"))), "RUBY_PLATFORM")

    assert_predicate(outcome, :success?, outcome.err)
    assert_includes(outcome.out, RUBY_PLATFORM.dump)
  end

  def test_config_h_of_another_system
    text = CONFIG.sub("#define SIZEOF_LONG 8", "#define HAVE_GNU_QSORT_R 1\n#define NUM2OFFT(v) NUM2LONG(v)\n\\0")
    check = "#ifdef HAVE_GNU_QSORT_R\nboth\n#endif\nNUM2OFFT(1)"

    assert_match(/both.*NUM2LONG\(1\)/m, preprocess(header("x86_64-linux-gnu", text), check).out)
    assert_match(/\A\s*NUM2LL\(1\)/, preprocess(header("arm64-darwin", text), check).out)
    assert_match(/\A\s*NUM2LONG\(1\)/, preprocess(header("x86_64-freebsd", text), check).out)
  end

  # CI has no compiler for other systems if the registry does not answer.
  def test_the_check_of_platforms_says_what_it_skips
    folder = tempdir
    npm = File.join(folder, "npm")
    File.write(npm, "#!/bin/sh\nexit 1\n")
    File.chmod(0o755, npm)
    outcome = run_command(File.join(Tools::ROOT, "bin/build"), "--check-platforms", "--ruby", RbConfig.ruby,
                          env: { "PATH" => "#{folder}:#{ENV.fetch("PATH")}", "XDG_CACHE_HOME" => folder,
                                 "HEDDLE_ZIG" => nil })

    assert_predicate(outcome, :success?, outcome.err)
    assert_match(/skipped: zig #{NATIVE::Zig::VERSION} cannot be had from the npm package/, outcome.err)
  end

  def test_a_platform_that_is_none
    error = assert_raises(Tools::Problem) { NATIVE.target("vax-vms") }

    assert_equal("\"vax-vms\" is no platform: #{NATIVE::TARGETS.keys.join(", ")}", error.message)
  end

  # RubyGems on each of the platforms takes its own gem, and no other.
  def test_rubygems_knows_the_platforms
    NATIVE::TARGETS.each_key do |name|
      local = Gem::Platform.new(name.delete_suffix("-gnu"))
      fitting = NATIVE::TARGETS.keys.select { |other| [local].grep(Gem::Platform.new(other)).any? }

      assert_equal([name], fitting)
    end
  end

  def gems(*rubies) = NATIVE::Build.new(rubies: rubies, console: Tools::Console.new(out: StringIO.new))

  # A Ruby outside of the range gets the gem with the sources.
  def test_the_rubies_of_a_gem
    needed = Gem::Requirement.new(gems(RbConfig.ruby).requirement)
    series = RUBY_VERSION[/\d+\.\d+/]
    skip("no gem is made for this Ruby") unless NATIVE::Build::SERIES.include?(series)

    assert(needed.satisfied_by?(Gem::Version.new(RUBY_VERSION)))
    refute(needed.satisfied_by?(Gem::Version.new(series.next)))
    refute(needed.satisfied_by?(Gem::Version.new("#{series.next}.0.preview1")))
    refute(needed.satisfied_by?(Gem::Version.new("3.3.1")))
  end

  # A gem with the compiled file of this Ruby, installed where nothing else is, with neither make nor a compiler.
  def test_a_compiled_gem_needs_no_compiler
    abi = RbConfig::CONFIG["ruby_version"]
    binary = $LOADED_FEATURES.grep(/heddle_native\.so\z/).first
    skip("RubyGems of this Ruby names its version with \"dev\"") if Gem.ruby_version.prerelease?
    gem = Tools::GemFile.new("heddle.gemspec").compiled(
      Gem::Platform.local.to_s, { "lib/heddle/#{abi}/heddle_native.so" => binary }, [">= 3.3.2"]
    )

    assert_empty(gem.spec.files.grep(/\Aext/))
    attempt = Tools::Release::BareInstall.new(RbConfig.ruby, gem.build(tempdir), compiled: true).try

    assert_match(/\Ahere: Heddle #{Heddle::VERSION}, Ruby #{RUBY_VERSION}/, attempt.said)
  end
end
