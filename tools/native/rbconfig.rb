# frozen_string_literal: true

# Loaded before extconf.rb: from here on RbConfig describes a Ruby on another platform, and mkmf compiles for that one.
require "rbconfig"
require "json"

given = JSON.parse(ENV.fetch("HEDDLE_NATIVE"))
glibc = given.fetch("triple").include?("gnu") ? " -D_GNU_SOURCE -include #{File.join(__dir__, "glibc_stat.h")}" : ""
zig = given.fetch("zig")
compiler = "#{zig} cc -target #{given.fetch("triple")}#{given.fetch("system_headers")}"
# A Mac loads a dynamic library as an extension, too. Its symbols of Ruby are in the program that loads it.
shared = given.fetch("system") == "darwin" ? "-dynamiclib -Wl,-undefined,dynamic_lookup" : "-shared"
level = given.fetch("only_checks") ? "-O0" : "-O3"
settings = {
  "CC" => compiler, "CXX" => "#{zig} c++ -target #{given.fetch("triple")}", "CPP" => "#{compiler} -E",
  "AR" => "#{zig} ar", "LDSHARED" => "#{compiler} #{shared}", "LDSHAREDXX" => "#{compiler} #{shared}",
  "host_cpu" => given.fetch("cpu"), "target_cpu" => given.fetch("cpu"), "build_cpu" => given.fetch("cpu"),
  "arch" => given.fetch("platform"), "rubyarchhdrdir" => given.fetch("headers"),
  "host_os" => given.fetch("system"), "target_os" => given.fetch("system"), "DLEXT" => given.fetch("suffix"),
  # The compiler would add checks that call a library of its own. Paths of this machine have no place in a gem.
  "CFLAGS" => "#{level} -fPIC -fno-strict-aliasing -fno-sanitize=undefined " \
              "-ffile-prefix-map=#{given.fetch("root")}/=#{glibc}",
  "CCDLFLAGS" => "-fPIC", "optflags" => level, "debugflags" => "-g0", "ARCH_FLAG" => "", "CPPFLAGS" => "",
  "DLDFLAGS" => "-s", "LDFLAGS" => "", "LIBS" => "", "MAINLIBS" => "", "DLDLIBS" => "", "LIBRUBYARG" => "",
  "LIBRUBYARG_SHARED" => "", "LIBRUBYARG_STATIC" => "", "RPATHFLAG" => "", "warnflags" => "-Wall -Wextra"
}
[RbConfig::CONFIG, RbConfig::MAKEFILE_CONFIG].each { |config| config.update(settings) }
