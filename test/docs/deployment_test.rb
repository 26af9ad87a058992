# frozen_string_literal: true

# bin/test: takes 6 s, 0.7 of a core

require_relative "../test_helper"
require "net/http"
require "support/clients"
require "support/serve_program"

# examples/deployment: the container file has what a security scan asks for, and its commands run without rights and
# without io_uring; the options of the systemd units are known.
class DeploymentExampleTest < HeddleTest
  FOLDER = File.expand_path("../../examples/deployment", __dir__)
  EXE = File.expand_path("../../exe/heddle", __dir__)
  REFUSED_CALLS = File.expand_path("../support/api/refused_calls.rb", __dir__)
  APP = <<~RUBY
    run(lambda do |_env|
      rights = File.read("/proc/self/status")[/^CapEff:\\s*(\\h+)/, 1].to_i(16)
      [200, { "content-type" => "text/plain" }, ["\#{Heddle.stats.schedulers.map(&:backend)} \#{rights}"]]
    end)
  RUBY

  def teardown
    @program&.close
    super
  end

  def skip_without_what_it_needs
    missing = %w[protocol-rack protocol-http1].filter_map do |gem|
      TestSupport::Clients.load(gem, gem.tr("-", "/"))
    end.first
    skip(missing) if missing
    skip("setpriv is not here") unless File.executable?("/usr/bin/setpriv")
  end

  # [[instruction, its text], ...]
  def instructions
    lines = File.read(File.join(FOLDER, "Containerfile")).gsub(/^#.*\n/, "").gsub("\\\n", " ").lines(chomp: true)
    lines.reject(&:empty?).map { |line| line.split(" ", 2) }
  end

  def last_stage = instructions.slice_before { |name,| name == "FROM" }.to_a.last

  def text_of(name) = last_stage.to_h.fetch(name)

  def command_of(name) = JSON.parse(text_of(name)[/\[.*\]/])

  def test_it_runs_as_a_user_without_rights_who_owns_nothing
    assert_match(/\A[1-9]\d{3,}:[1-9]\d{3,}\z/, text_of("USER"))
    after = last_stage.drop_while { |name,| name != "USER" }.map(&:first)

    assert_empty(after & %w[RUN COPY ADD WORKDIR])
    refute_match(/--chown/, instructions.join(" "))
  end

  def test_its_images_have_a_version_and_nothing_comes_from_elsewhere
    images = instructions.filter_map { |name, text| text.split.first if name == "FROM" }

    images.each { |image| assert_match(/\A[a-z]+:\d[\w.-]+\z/, image) }
    refute_includes(instructions.map(&:first), "ADD")
    refute_match(/curl|wget|sudo|--privileged|PASSWORD|SECRET|TOKEN/i, instructions.join(" "))
    refute_match(/build-essential/, last_stage.join(" "))
    assert_match(%r{--no-install-recommends.*rm -rf /var/lib/apt/lists}, instructions.join(" "))
  end

  def test_secrets_stay_out_of_the_image
    ignored = File.readlines(File.join(FOLDER, ".dockerignore"), chomp: true)

    assert_empty(%w[.git .env* **/*.key **/*.pem] - ignored)
  end

  def test_its_commands_run_without_rights_and_without_io_uring
    skip_without_what_it_needs
    dir = tempdir
    File.write(File.join(dir, "config.ru"), APP)
    given = { "bundle" => nil, "exec" => nil, "heddle" => EXE, "9292" => "0" }
    command = command_of("CMD").map { |word| given.fetch(word, word).to_s.sub(":9293", ":0") } - [""]
    without_rights = %w[setpriv --bounding-set=-all --inh-caps=-all --no-new-privs]
    refusing = [*ruby_command, REFUSED_CALLS, "io_uring"]
    @program = program = TestSupport::ServeProgram.new(*without_rights, *refusing, *ruby_command, *command,
                                                       until_said: /is ready/, times: 2, chdir: dir)

    assert_equal('["epoll"] 0', program.get.body)
    port = program.said.join[%r{health and metrics on tcp://[\d.]+:(\d+)}, 1]
    health = command_of("HEALTHCHECK").drop(1).map { |word| word.sub("9293", port) }

    assert_predicate(run_command(*ruby_command, *health), :success?)
    program.signal(text_of("STOPSIGNAL").delete_prefix("SIG"))

    assert_predicate(program.wait, :success?)
    refute_predicate(run_command(*ruby_command, *health), :success?)
  end

  def test_the_options_of_the_unit_are_known
    unit = File.read(File.join(FOLDER, "app.service"))
    options = unit[/^ExecStart=.*heddle serve (.*)/, 1].scan(/--[\w-]+/)
    help = run_command(*ruby_command, EXE, "serve", "--help").out

    refute_empty(options)
    assert_empty(options.reject { |option| help.include?("#{option} ") })
    assert_equal(unit[%r{--bind tcp://(\S+)}, 1],
                 File.read(File.join(FOLDER, "app.socket"))[/^ListenStream=(.*)/, 1])
  end
end
