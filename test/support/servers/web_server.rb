# frozen_string_literal: true

require "net/http"
require "support/rails/puma"
require "support/serve_program"

module TestSupport
  # Web servers of others, as their users start them, each in a process group of its own.
  module WebServer
    # How each is started, and what it says when it serves.
    GEMS = { puma: "puma", puma_plugin: "puma", unicorn: "unicorn" }.freeze
    PASSENGER = %w[/usr/bin/passenger].freeze

    module_function

    # @return [String, nil] why it cannot be had here
    def missing(name)
      return GEMS.key?(name) ? Clients.load(GEMS[name], "rack") : nil unless name == :passenger

      "Debian's package passenger is not installed (bin/test tries to install it)" unless File.exist?(PASSENGER.first)
    end

    # @param name [Symbol]
    # @param ruby [Array<String>] a Ruby with its load path
    # @param file [String] a config.ru
    # @param folder [String] for what it writes
    # @return [ServeProgram]
    def start(name, ruby, file, folder:, port:, env: {})
      File.write(File.join(folder, "puma.rb"), "plugin :heddle\n")
      File.write(File.join(folder, "unicorn.rb"), "worker_processes 1\ntimeout 60\n")
      FileUtils.cp(file, File.join(folder, "config.ru"))
      command, said = send(name, ruby, folder, port)
      path = ruby.grep(/\A-I/).map { |option| option.delete_prefix("-I") }.join(":")
      env = { "RUBYLIB" => path, "RACK_ENV" => "production", **env }
      env["APP_PLUGIN"] = "1" if name == :puma_plugin
      ServeProgram.new(*command, env: env, until_said: said, chdir: folder)
    end

    def puma_command(ruby, port, *options)
      Puma.command(ruby, *options, "-t", "5:5", "-b", "tcp://127.0.0.1:#{port}")
    end

    def puma(ruby, _folder, port) = [puma_command(ruby, port, "-C", "-"), /Listening on/]

    def puma_plugin(ruby, folder, port) = [puma_command(ruby, port, "-C", "#{folder}/puma.rb"), /Listening on/]

    def unicorn(ruby, folder, port)
      [[*ruby, "-W1", "-e", "gem 'unicorn'; load Gem.bin_path('unicorn', 'unicorn')", "--", "-l", "127.0.0.1:#{port}",
        "-c", "#{folder}/unicorn.rb", "-E", "none"], /worker=0 ready/]
    end

    # It can be asked for one request at a time.
    def passenger(ruby, folder, port)
      FileUtils.mkdir_p(File.join(folder, "public"))
      [[*PASSENGER, "start", "--ruby", ruby.first, "--engine", "builtin", "--address", "127.0.0.1",
        "--port", port.to_s, "--max-pool-size", "1", "--disable-security-update-check", "--disable-anonymous-telemetry",
        "--disable-turbocaching", "--log-file", "#{folder}/passenger.log", "--pid-file", "#{folder}/passenger.pid",
        "--instance-registry-dir", folder, "--environment", "production"], /Accessible via/]
    end
  end
end
