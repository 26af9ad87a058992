# frozen_string_literal: true

# Loaded before extconf.rb: from here on RbConfig describes a Ruby on another platform, and mkmf compiles for that one.
require "rbconfig"
require "json"

given = JSON.parse(ENV.fetch("HEDDLE_NATIVE"))
glibc = given.fetch("triple").include?("gnu") ? " -D_GNU_SOURCE -include #{File.join(__dir__, "glibc_stat.h")}" : ""
zig = given.fetch("zig")
compiler = "#{zig} cc -target #{given.fetch("triple")}"
settings = {
  "CC" => compiler, "CXX" => "#{zig} c++ -target #{given.fetch("triple")}", "CPP" => "#{compiler} -E",
  "AR" => "#{zig} ar", "LDSHARED" => "#{compiler} -shared", "LDSHAREDXX" => "#{compiler} -shared",
  "host_cpu" => given.fetch("cpu"), "target_cpu" => given.fetch("cpu"), "build_cpu" => given.fetch("cpu"),
  "arch" => given.fetch("platform"), "rubyarchhdrdir" => given.fetch("headers"),
  # The compiler would add checks that call a library of its own. Paths of this machine have no place in a gem.
  "CFLAGS" => "-O3 -fPIC -fno-strict-aliasing -fno-sanitize=undefined " \
              "-ffile-prefix-map=#{given.fetch("root")}/=#{glibc}",
  "CCDLFLAGS" => "-fPIC", "optflags" => "-O3", "debugflags" => "-g0", "ARCH_FLAG" => "", "CPPFLAGS" => "",
  "DLDFLAGS" => "-s", "LDFLAGS" => "", "LIBS" => "", "MAINLIBS" => "", "DLDLIBS" => "", "LIBRUBYARG" => "",
  "LIBRUBYARG_SHARED" => "", "LIBRUBYARG_STATIC" => "", "RPATHFLAG" => "", "warnflags" => "-Wall -Wextra"
}
[RbConfig::CONFIG, RbConfig::MAKEFILE_CONFIG].each { |config| config.update(settings) }
