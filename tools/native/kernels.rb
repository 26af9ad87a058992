# frozen_string_literal: true

# Runs Heddle on other kernels of Linux, in a machine that qemu emulates:
#   bin/ruby tools/native/kernels.rb [--kernel 5.10|6.1|6.12|newest ...] [TEST ...]
#
# Needs Debian's packages qemu-system-x86 and cpio, and Debian's keyring. It fetches the kernels from the mirror that
# apt uses (about 100 MB each), and starts each with a file system in memory that has a Ruby 3.3, this repository, and a
# few programs of this machine. There, `heddle doctor`, a small `heddle demo` and the test files run: as the kernel is;
# with io_uring switched off by sysctl (from Linux 6.6 on); and with io_uring refused as by Docker's seccomp profile.
# Without tests that are named, the files of TESTS run. No KVM is used: programs take 10 to 30 times as long, so times
# say nothing. kernel_init.rb is what runs inside. Four test files took 4 to 9 minutes on a kernel.

require "json"
require "optparse"
require_relative "../console"
require_relative "../rubies/private_apt"
require_relative "../rubies/rubies"

module Tools
  # See the head of this file.
  class Kernels
    SERIES = "3.3"
    # By the suite of Debian that has it.
    SUITES = { "5.10" => "bullseye", "6.1" => "bookworm", "6.12" => "trixie", "newest" => "sid" }.freeze
    TESTS = %w[
      test/contract/waits/io_wait_in_all_forms_test.rb
      test/contract/waits/select_in_all_forms_test.rb
      test/contract/waits/sleep_returns_and_wakes_in_order_test.rb
      test/contract/sockets/clients_connect_test.rb
      test/contract/sockets/servers_accept_test.rb
      test/contract/files/regular_files_test.rb
      test/contract/processes/waiting_for_children_test.rb
    ].freeze
    # Of this machine, for the tests.
    PROGRAMS = %w[sh bash cat chmod cp echo env false head ls mkdir mkfifo mount ps rm seq sleep sort tail test touch tr
                  true umount unshare wc].freeze
    PARTS = %w[lib test exe tools examples heddle-server bin].freeze
    SETTINGS = { "passwd" => "root:x:0:0:root:/root:/bin/sh\n", "group" => "root:x:0:\n",
                 "hosts" => "127.0.0.1 localhost\n::1 localhost\n", "nsswitch.conf" => "hosts: files\n",
                 "services" => "http 80/tcp\nhttps 443/tcp\n" }.freeze
    MEMORY = 1536 # MB
    MODES = 3 # of kernel_init.rb
    LIMIT = 5400 # seconds for all that one kernel does

    def initialize(kernels, tests, console: Console.new)
      @kernels = kernels.empty? ? SUITES.keys : kernels
      @tests = tests.empty? ? TESTS : tests
      @console = console
      @folder = File.join(Tools.cache, "kernels")
      @log = File.join(Tools.cache, "log", "kernels.log")
    end

    # @return [Boolean] whether all went well on each of them
    def run
      Tools.need_programs("qemu-system-x86_64" => "qemu-system-x86", "cpio" => "cpio", "apt-get" => "apt")
      make_files
      @kernels.map { |name| start(name, kernel(name)) }.all?
    end

    private

    # @return [String] the path of the kernel
    def kernel(name)
      suite = SUITES.fetch(name) { raise Problem, "#{name} is none of #{SUITES.keys.join(", ")}" }
      place = File.join(@folder, suite)
      fetch(name, suite, place) if Dir.glob("#{place}/vmlinuz-*").empty?
      Dir.glob("#{place}/vmlinuz-*").max or raise Problem.new("no kernel came from #{suite}", log: @log)
    end

    def fetch(name, suite, place)
      @console.step("fetching Linux #{name} from Debian #{suite}", takes: "1 to 3 minutes") do |show|
        apt = PrivateApt.new("#{place}-apt", suite: suite, mirror: PrivateApt.mirrors.first, types: "deb", log: @log)
        apt.get("update", show: show)
        image = apt.cache("depends", "linux-image-amd64")[/Depends: (linux-image-\d\S+)/, 1]
        raise Problem.new("#{suite} has no linux-image-amd64 any more", log: @log) unless image

        # Newer packages have the kernel itself in a package of its own.
        names = [image, apt.cache("depends", image)[/Depends: (linux-binary-\S+)/, 1]].compact
        FileUtils.mkdir_p("#{place}/packages")
        apt.get("download", *names, show: show, chdir: "#{place}/packages")
        unpack(place, image.delete_prefix("linux-image-"))
      end
    end

    def unpack(place, release)
      folder = "#{place}/packages"
      Dir.glob("#{folder}/*.deb").each { |package| Command.run("dpkg-deb", "-x", package, folder, log: @log) }
      FileUtils.mv(Dir.glob("#{folder}/**/vmlinuz*").first, "#{place}/vmlinuz-#{release}")
      FileUtils.rm_rf(folder)
    end

    def initramfs = File.join(@folder, "initramfs.cpio")

    # The file system that the machine starts with.
    def make_files
      ruby = Rubies.of_series(SERIES) or raise Problem, "Ruby #{SERIES} is needed here: bin/setup"
      check_binary
      root = File.join(@folder, "root")
      @console.step("making the file system of the machine") do
        FileUtils.rm_rf(root)
        %w[proc sys dev tmp run root heddle etc bin].each { |name| FileUtils.mkdir_p(File.join(root, name)) }
        SETTINGS.each { |name, text| File.write(File.join(root, "etc", name), text) }
        copy_ruby(ruby.exe, root)
        PROGRAMS.each { |name| copy_program(name, root) }
        FileUtils.cp_r(PARTS.map { |name| File.join(ROOT, name) }, File.join(root, "heddle"))
        File.write(File.join(root, "tests"), @tests.join("\n"))
        write_init(ruby.exe, root)
        Command.run("sh", "-c", 'cd "$1" && find . | cpio --quiet -o -H newc > "$2"', "sh", root, initramfs, log: @log)
      end
    end

    def check_binary
      return if File.exist?(File.join(ROOT, "lib/heddle/#{SERIES}.0/heddle_native.so"))

      raise Problem, "bin/build for Ruby #{SERIES} comes first"
    end

    # At the same place as here, with the libraries that it and its extensions need.
    def copy_ruby(exe, root)
      prefix = File.expand_path("../..", exe)
      target = File.join(root, prefix)
      FileUtils.mkdir_p(target)
      FileUtils.cp_r(%w[bin lib].map { |name| File.join(prefix, name) }, target)
      FileUtils.rm_f(Dir.glob("#{target}/lib/*.a"))
      [exe, *Dir.glob("#{prefix}/lib/ruby/**/*.so")].each { |file| copy_libraries(file, root) }
    end

    def copy_program(name, root)
      path = Tools.which(name) or return
      copy(path, File.join("/bin", name), root)
      copy_libraries(path, root)
    end

    def copy_libraries(file, root)
      Command.output("ldd", file).to_s.scan(%r{(/\S+) \(0x}).flatten.each { |path| copy(path, path, root) }
    end

    def copy(path, place, root)
      target = File.join(root, place)
      return if File.exist?(target)

      FileUtils.mkdir_p(File.dirname(target))
      FileUtils.cp(File.realpath(path), target)
    end

    def write_init(exe, root)
      text = File.read(File.join(__dir__, "kernel_init.rb"))
      File.write(File.join(root, "init"), "#!#{exe} --disable=gems\n#{text}")
      File.chmod(0o755, File.join(root, "init"))
    end

    # @return [Boolean] whether all went well
    def start(name, kernel)
      log = File.join(Tools.cache, "log", "kernel-#{name}.log")
      boot(name, kernel, log)
      results = File.readlines(log, encoding: "UTF-8").filter_map do |line|
        JSON.parse(line.scrub[7..], symbolize_names: true) if line.start_with?("RESULT ")
      end
      puts("Linux #{File.basename(kernel).delete_prefix("vmlinuz-")} (its console: #{log})")
      puts(results.flat_map { |result| lines(result) })
      puts("  the machine ended early") unless results.size == MODES
      results.size == MODES && results.all? { |result| well?(result) }
    end

    def boot(name, kernel, log)
      FileUtils.rm_f(log)
      @console.step("running Linux #{name}", takes: "up to #{LIMIT / 60} minutes") do |show|
        Command.run("timeout", LIMIT.to_s, "qemu-system-x86_64", "-cpu", "max", "-m", MEMORY.to_s, "-nodefaults",
                    "-display", "none", "-serial", "stdio", "-no-reboot", "-kernel", kernel, "-initrd", initramfs,
                    "-append", "console=ttyS0 quiet panic=-1 mitigations=off rdinit=/init", log: log, on_line: show)
      end
    rescue Problem => e
      warn(e.message)
    end

    def well?(result) = result[:missing] || (result[:demo] && result[:tests].all? { |test| test[:well] })

    def lines(result)
      return ["  #{result[:mode]}: not run, #{result[:missing]}"] if result[:missing]

      passed = result[:tests].sum { |test| test[:runs] - test[:failed] - test[:skipped] }
      failed, skipped = %i[failed skipped].map { |key| result[:tests].sum { |test| test[key] } }
      ["  #{result[:mode]}: #{result[:backend]}, demo #{result[:demo] ? "works" : "FAILS"}, " \
       "#{passed} tests passed, #{failed} failed, #{skipped} skipped",
       *result[:others].map { |name, reason| "    no #{name}: #{reason}" },
       *result[:lacking].map { |name| "    lacks #{name}" },
       *result[:tests].reject { |test| test[:well] }.map { |test| "    FAILS: #{test[:file]}" }]
    end
  end
end

if $PROGRAM_NAME == __FILE__
  begin
    kernels = []
    OptionParser.new { |options| options.on("--kernel NAME") { |name| kernels << name } }.parse!
    exit(Tools::Kernels.new(kernels, ARGV).run ? 0 : 1)
  rescue Tools::Problem, OptionParser::ParseError => e
    abort(e.is_a?(Tools::Problem) ? e.report.join("\n") : e.message)
  end
end
