# frozen_string_literal: true

require "grpc"

# A service whose messages are text: "number seconds". It answers with the number, after these seconds; a stream answers
# three times. "number fifty" is answered when fifty of these wait, or with "late" after 25 seconds. Its stub is for the
# tests. The file is a program when it is started with a port.
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
  LOCK = Thread::Mutex.new
  CAME = Thread::ConditionVariable.new

  def ask(message, _call) = answer(message.text)
  def watch(message, _call) = Array.new(3).lazy.map { answer(message.text) }
  def collect(call) = Text.new(call.each_remote_read.map { |message| answer(message.text).text }.join(" "))
  def chat(messages) = messages.lazy.map { |message| answer(message.text) }

  private

  def answer(text)
    number, seconds = text.split
    return Text.new(fifty_wait? ? number : "late") if seconds == "fifty"

    sleep(Float(seconds))
    Text.new(number)
  end

  # (Each fifty of them.)
  def fifty_wait?
    LOCK.synchronize do
      all = ((@asked = @asked.to_i + 1) / 50.0).ceil * 50
      CAME.broadcast
      ends = now + 25
      CAME.wait(LOCK, 1) while @asked < all && now < ends
      @asked >= all
    end
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

if $PROGRAM_NAME == __FILE__
  # Calls of the tests before, whose clients have left, may still keep threads.
  server = GRPC::RpcServer.new(pool_size: 300)
  server.add_http2_port("127.0.0.1:#{ARGV.fetch(0)}", :this_port_is_insecure)
  server.handle(LateService.new)
  server.run_till_terminated
end
