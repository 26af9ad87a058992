# frozen_string_literal: true

require_relative "../../test_helper"
require "json"
require "socket"
require "support/clients"

# ruby_llm: answers of language models that come in parts.
contract "RubyLlm" do
  heddle_only "it is about tasks"
  extend TestSupport::Clients

  client "ruby_llm"

  def setup
    super
    return if backend_missing

    @server = TCPServer.new("127.0.0.1", 0)
    @asked = Thread::Queue.new # an item for each question
    @go_on = Thread::Queue.new # an item for each part that may be sent
    @threads = [Thread.new { loop { @threads << Thread.new(@server.accept) { |peer| answer(peer) } } }]
    base = "http://127.0.0.1:#{@server.addr[1]}/v1"
    @context = RubyLLM.context { |config| config.ollama_api_base = base and config.request_timeout = 60 }
  end

  def teardown
    @threads&.each { |thread| thread.kill.join }
    @server&.close
    super
  end

  # No answer comes before all have asked.
  def test_many_at_once
    answers = run do
      Heddle.spawn { 10.times { @asked.pop } && 30.times { @go_on << true } }
      Heddle.map(1..10) { |number| ask("q#{number}") { nil } }
    end

    assert_equal((1..10).map { |number| "q#{number}0 q#{number}1 q#{number}2 " }, answers)
  end

  # A part is sent when the one before has reached the block.
  def test_parts_are_passed_on
    parts = run do
      @go_on << true
      [].tap { |parts| ask("q") { |part| parts << part.content if part.content && (@go_on << true) } }
    end

    assert_equal(["q0 ", "q1 ", "q2 "], parts.reject(&:empty?))
  end

  def test_a_cancel
    ended = run do
      task = Heddle.spawn { ask("q") { nil } }
      @asked.pop
      task.cancel.wait.status
    end

    assert_equal(:cancelled, ended)
  end

  private

  def ask(text, &)
    @context.chat(model: "m", provider: :ollama, assume_model_exists: true).ask(text, &).content
  end

  def answer(peer)
    size = 0
    while (line = peer.gets) && line != "\r\n"
      size = Regexp.last_match(1).to_i if line =~ /\Acontent-length: (\d+)/i
    end
    text = JSON.parse(peer.read(size))["messages"].last["content"]
    peer.write("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
    @asked << text
    3.times { |number| send_part(peer, "#{text}#{number} ") if @go_on.pop }
    peer.write("data: [DONE]\n\n")
  rescue SystemCallError
    nil # it was cancelled
  ensure
    peer.close
  end

  def send_part(peer, text)
    part = { id: "1", object: "chat.completion.chunk", model: "m", choices: [{ index: 0, delta: { content: text } }] }
    peer.write("data: #{JSON.generate(part)}\n\n")
  end
end
