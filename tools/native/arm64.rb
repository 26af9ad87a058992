# frozen_string_literal: true

# Runs Heddle on arm64, emulated, in a folder with Debian's Ruby 3.3 and no compiler:
#   bin/ruby tools/native/arm64.rb [TEST ...]
#
# Needs root, and Debian's packages debootstrap and qemu-user-static. It makes the folder (about 300 MB, in the cache),
# cross-compiles the gem, installs it there, and asks a first program for an answer. Test files that are named run
# there, too. Emulated programs take about ten times as long, and qemu offers no io_uring, so the tests use epoll.
#
# The packages are unpacked, not configured: their scripts would run emulated for an hour, and Ruby needs none of them.

require_relative "build"

module Tools
  # See the head of this file.
  class Arm64
    SUITE = "trixie"
    SERIES = "3.3"
    PLATFORM = "aarch64-linux-gnu"
    # What a command finds in the folder.
    ANSWER = "/heddle/tools/release/first_answer.rb"
    TEST_LIMIT = 3600 # seconds
    # In etc/.
    SETTINGS = { "passwd" => "root:x:0:0:root:/root:/bin/sh\n", "hosts" => "127.0.0.1 localhost\n",
                 "nsswitch.conf" => "hosts: files dns\n" }.freeze

    def initialize(tests, console: Console.new)
      @tests = tests
      @console = console
      @folder = File.join(Tools.cache, "arm64-#{SUITE}")
      @log = File.join(Tools.cache, "log", "arm64.log")
    end

    # @return [Boolean] whether the gem works there, and all tests pass
    def run
      check_machine
      bootstrap unless File.exist?(File.join(@folder, "usr/bin/ruby"))
      install
      puts(inside("ruby", ANSWER))
      @tests.map { |test| passes?(test) }.all?
    end

    private

    def check_machine
      Tools.need_programs("debootstrap" => "debootstrap", "qemu-aarch64-static" => "qemu-user-static")
      raise Problem, "only root can make the folder and enter it" unless Tools.root_user?
      return if File.exist?("/proc/sys/fs/binfmt_misc/qemu-aarch64")

      raise Problem, "the kernel does not know how to start a program for arm64: mount -t binfmt_misc binfmt_misc " \
                     "/proc/sys/fs/binfmt_misc; cat /usr/lib/binfmt.d/qemu-aarch64.conf > " \
                     "/proc/sys/fs/binfmt_misc/register"
    end

    def bootstrap
      @console.step("making a folder with Debian #{SUITE} for arm64", takes: "a few minutes") do |show|
        Command.run("debootstrap", "--arch=arm64", "--foreign", "--variant=minbase", "--include=ruby,ruby-minitest",
                    SUITE, @folder, log: @log, on_line: show)
        Dir.glob(File.join(@folder, "var/cache/apt/archives/*.deb")).each { |package| unpack(package, show) }
      end
      proc = File.join(@folder, "proc")
      FileUtils.rm_f(proc) if File.symlink?(proc) # debootstrap makes a link where it may not mount
      FileUtils.mkdir_p(proc)
      SETTINGS.each { |name, text| Tools.write_whole(File.join(@folder, "etc", name), text) }
    end

    def unpack(package, show)
      Command.run("sh", "-c", 'dpkg-deb --fsys-tarfile "$1" | tar x --keep-directory-symlink -C "$2"', "sh", package,
                  @folder, log: @log, on_line: show)
    end

    # The gem, and the files of the repository for its tests.
    def install
      ruby = Rubies.of_series(SERIES) or raise Problem, "Ruby #{SERIES} is needed here: bin/setup"
      gem = Native::Build.new(platforms: [PLATFORM], rubies: [ruby.exe], console: @console).build("pkg").first
      place = File.join(@folder, "heddle")
      FileUtils.rm_rf(place)
      FileUtils.mkdir_p(place)
      FileUtils.cp_r(%w[lib test tools exe bench heddle-server].map { |name| File.join(ROOT, name) }, place)
      FileUtils.cp(gem, File.join(place, "heddle.gem"))
      @console.step("installing #{File.basename(gem)} there") do
        puts(inside("gem", "install", "--local", "/heddle/heddle.gem"))
      end
      inside("cp", "-r", *binary_folder, "/heddle/lib/heddle/")
    end

    def binary_folder
      found = Dir.glob("var/lib/gems/*/gems/heddle-[0-9]*-#{PLATFORM}/lib/heddle/[0-9]*", base: @folder)
      found.map { |path| "/#{path}" }
    end

    def passes?(test)
      @console.say(test)
      puts(inside("timeout", TEST_LIMIT.to_s, "ruby", "-I/heddle/test", "-I/heddle/lib", "/heddle/#{test}"))
      true
    rescue Problem => e
      warn(e.message)
      false
    end

    # @return [String] what the command prints there, in a place of its own for processes and mounts
    def inside(*command)
      enter = 'mount -t proc proc "$1/proc" && shift && exec chroot "$@"'
      environment = { "HOME" => "/root", "PATH" => "/usr/sbin:/usr/bin:/sbin:/bin", "LANG" => "C.UTF-8" }
      text = IO.popen([environment, "unshare", "--mount", "--pid", "--fork", "sh", "-c", enter, "sh", @folder, @folder,
                       *command, { err: %i[child out], unsetenv_others: true }], &:read)
      raise Problem, "#{command.join(" ")} failed:\n#{text}" unless $CHILD_STATUS.success?

      text
    end
  end
end

if $PROGRAM_NAME == __FILE__
  begin
    exit(Tools::Arm64.new(ARGV).run ? 0 : 1)
  rescue Tools::Problem => e
    abort(e.report.join("\n"))
  end
end
