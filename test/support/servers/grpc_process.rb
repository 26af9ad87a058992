# frozen_string_literal: true

require "grpc"

# A service whose messages are text: "number seconds". It answers with the number, after so many seconds; a stream
# answers three times. Its stub is for the tests. (A program when it is started with a port.)
class LateService
  # A message.
  Text = Struct.new(:text) do
    def self.encode(message) = message.text
    def self.decode(text) = new(text)
  end

  include GRPC::GenericService

  self.marshal_class_method = :encode
  self.unmarshal_class_method = :decode
  self.service_name = "heddle.Late"

  rpc :Ask, Text, Text
  rpc :Watch, Text, stream(Text)
  rpc :Collect, stream(Text), Text
  rpc :Chat, stream(Text), stream(Text)

  Stub = rpc_stub_class

  def ask(message, _call) = answer(message.text)
  def watch(message, _call) = Array.new(3).lazy.map { answer(message.text) }
  def collect(call) = Text.new(call.each_remote_read.map { |message| answer(message.text).text }.join(" "))
  def chat(messages) = messages.lazy.map { |message| answer(message.text) }

  private

  def answer(text)
    number, seconds = text.split
    sleep(Float(seconds))
    Text.new(number)
  end
end

if $PROGRAM_NAME == __FILE__
  server = GRPC::RpcServer.new(pool_size: 60)
  server.add_http2_port("127.0.0.1:#{ARGV.fetch(0)}", :this_port_is_insecure)
  server.handle(LateService.new)
  server.run_till_terminated
end
