# frozen_string_literal: true

require "open3"
require "support/certificate"
require "support/servers/front"

module TestSupport
  # Many requests of real clients to a server, by itself or behind a real proxy, and what is answered wrongly.
  # The server answers with the path, repeated as often as the path says: /12/3 with "/12/3/12/3/12/3".
  module CountedRequests
    APP = <<~RUBY
      run(lambda do |env|
        env["rack.input"]&.read
        path = env["PATH_INFO"]
        [200, { "content-type" => "text/plain" }, [path * path[%r{\\d+\\z}].to_i]]
      end)
    RUBY
    # What stands in front of the server, and takes its requests.
    FRONTS = { "no proxy" => nil, "HAProxy" => Servers::HAProxyFront, "nginx" => Servers::NginxFront }.freeze
    # The clients of each, and what they speak. curl 7.88 uses HTTP/2 only with TLS: without TLS its second request on a
    # connection fails, with any server ("Error in the HTTP2 framing layer"). h2load takes the empty reason in HAProxy's
    # answers of HTTP/1.1 for a failure.
    CLIENTS = { "h2load" => :http2, "h2load --h1" => :http1, "curl" => :http1,
                "curl --insecure --http2" => :tls }.freeze
    CANNOT = { "HAProxy" => ["h2load --h1"] }.freeze
    # So often the path is repeated in the answers, by turns: nine of one piece, and one of several frames.
    SIZES = [*[1] * 9, 3000].freeze

    module_function

    # @param front [String] of FRONTS
    # @return [Array<String>] those of its CLIENTS that are here
    def clients(front)
      (CLIENTS.keys - CANNOT.fetch(front, [])).select { |client| Servers::Server.program(client.split.first) }
    end

    # @param folder [String] for the files of a certificate
    # @return [Array<String>] the arguments of `heddle serve`, which listens without TLS and with it
    def arguments(folder)
      cert, key = %w[certificate key].map do |name|
        File.join(folder, "#{name}.pem").tap { |file| File.write(file, Certificate.public_send(name).to_pem) }
      end
      ["--bind", "tcp://127.0.0.1:0", "--bind", "ssl://127.0.0.1:0?cert=#{cert}&key=#{key}"]
    end

    # @param front [String] of FRONTS
    # @param server [ServeProgram] that was started with {arguments}
    # @yield [ports] where the clients are served by what they speak: {Symbol => Integer}
    # @raise [Servers::Missing]
    def behind(front, server)
      proxy = FRONTS.fetch(front)&.new(server.port)
      return yield({ http1: server.port, http2: server.port, tls: server.tls_port }) unless proxy

      proxy.start
      yield({ http1: proxy.port, http2: proxy.http2_port, tls: proxy.tls_port })
    ensure
      proxy&.stop
    end

    # @param client [String] of CLIENTS
    # @param ports [Hash{Symbol => Integer}]
    # @param number [Integer] of requests
    # @param limit [Numeric] seconds
    # @return [String, nil] what is wrong
    def wrong(client, ports, number, limit:)
      spoken = CLIENTS.fetch(client)
      url = "#{spoken == :tls ? "https" : "http"}://127.0.0.1:#{ports.fetch(spoken)}"
      command = ["timeout", "-k", "1", limit.to_s, *client.split]
      client.start_with?("curl") ? curl(command, url, number) : h2load(command, url, number)
    end

    # Eight connections at the same time.
    def h2load(command, url, number)
      said, status = Open3.capture2e(*command, "-n#{number}", "-c8", *("-m10" unless command.include?("--h1")),
                                     *SIZES.map { |size| "#{url}/0/#{size}" })
      all = "requests: #{number} total, #{number} started, #{number} done, #{number} succeeded, 0 failed, 0 errored"
      said unless status.success? && said.include?(all) && said.include?("status codes: #{number} 2xx")
    end

    # One after another, each answer compared, and the version of HTTP that was spoken.
    def curl(command, url, number)
      spoken = url.start_with?("https") ? "2" : "1.1"
      command += ["--silent", "--show-error", "--fail", "--write-out", " %{http_version}\n"]
      IO.popen([*command, "#{url}/[1-#{number / SIZES.size}]/{#{SIZES.join(",")}}"], err: %i[child out]) do |answers|
        1.upto(number / SIZES.size) do |i|
          SIZES.each do |size|
            got = answers.gets(chomp: true)
            return "/#{i}/#{size}: #{got.inspect[0, 500]}" if got != "#{"/#{i}/#{size}" * size} #{spoken}"
          end
        end
        answers.read.then { |more| more unless more.empty? }
      end
    end
  end
end
