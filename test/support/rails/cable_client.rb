# frozen_string_literal: true

require "json"
require "socket"
require "websocket/driver"

module TestSupport
  # A client of ActionCable, as a browser is one.
  class CableClient
    # @return [String] that the driver asks for
    attr_reader :url

    def initialize(port, name: "ada")
      @url = "ws://127.0.0.1:#{port}/cable?name=#{name}"
      @socket = TCPSocket.new("127.0.0.1", port)
      @driver = WebSocket::Driver.client(self, protocols: ["actioncable-v1-json"])
      @messages = []
      @driver.on(:message) { |event| @messages << JSON.parse(event.data) }
      @driver.start
    end

    # For the driver.
    def write(bytes) = @socket.write(bytes)

    # Subscribes, and waits until that is confirmed.
    def subscribe(channel)
      @identifier = JSON.generate(channel: channel)
      send_command("subscribe")
      receive("type" => "confirm_subscription")
    end

    def perform(action, **data)
      send_command("message", data: JSON.generate(action: action, **data))
    end

    # @return [Hash] the next message that has all this
    # @raise [RuntimeError] if none comes for a minute
    def receive(wanted)
      until (index = @messages.index { |one| wanted <= one })
        raise "no #{wanted}: #{@messages}" unless @socket.wait_readable(60)

        @driver.parse(@socket.readpartial(4096))
      end
      @messages.delete_at(index)
    end

    def close = @socket.close

    private

    def send_command(command, **more)
      @driver.text(JSON.generate(command: command, identifier: @identifier, **more))
    end
  end
end
