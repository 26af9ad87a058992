# frozen_string_literal: true

require "open3"
require_relative "servers/front"

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
    # The clients of each, and whether they speak HTTP/2. (curl 7.88 makes a single request over a connection of HTTP/2
    # without TLS. h2load takes the empty reason in HAProxy's answers of HTTP/1.1 for a failure.)
    CLIENTS = { "h2load" => true, "h2load --h1" => false, "curl" => false }.freeze
    CANNOT = { "HAProxy" => ["h2load --h1"] }.freeze
    # So often the path is repeated in the answers, by turns: nine of one piece, and one of several frames.
    SIZES = [*[1] * 9, 3000].freeze

    module_function

    # @param front [String] of FRONTS
    # @return [Array<String>] those of its CLIENTS that are here
    def clients(front)
      (CLIENTS.keys - CANNOT.fetch(front, [])).select { |client| Servers::Server.program(client.split.first) }
    end

    # @param front [String] of FRONTS
    # @param port [Integer] of the server
    # @yield [ports] where the clients are served that speak HTTP/2, and the others: {true => Integer, false => Integer}
    # @raise [Servers::Missing]
    def behind(front, port)
      proxy = FRONTS.fetch(front)&.new(port)
      proxy&.start
      yield(proxy ? { true => proxy.http2_port, false => proxy.port } : { true => port, false => port })
    ensure
      proxy&.stop
    end

    # @param client [String] of CLIENTS
    # @param ports [Hash{Boolean => Integer}]
    # @param number [Integer] of requests
    # @param limit [Numeric] seconds
    # @return [String, nil] what is wrong
    def wrong(client, ports, number, limit:)
      url = "http://127.0.0.1:#{ports.fetch(CLIENTS.fetch(client))}"
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

    # One after another, each answer compared.
    def curl(command, url, number)
      command += %w[--silent --show-error --fail --write-out \n]
      IO.popen([*command, "#{url}/[1-#{number / SIZES.size}]/{#{SIZES.join(",")}}"], err: %i[child out]) do |answers|
        1.upto(number / SIZES.size) do |i|
          SIZES.each do |size|
            got = answers.gets(chomp: true)
            return "/#{i}/#{size}: #{got.inspect[0, 500]}" if got != "/#{i}/#{size}" * size
          end
        end
        answers.read.then { |more| more unless more.empty? }
      end
    end
  end
end
