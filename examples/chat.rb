# frozen_string_literal: true

# A chat server. At SIGTERM or Ctrl-C it takes no new members, sends the last messages to all members, and ends. It
# waits at most five seconds for members that read slowly.
#
#   ruby examples/chat.rb [PORT]
#
# Then, in two or more terminals: nc 127.0.0.1 7000

require "heddle"
require "optparse"
require "socket"

# Everybody who is in the chat.
class Room
  UNREAD = 100 # lines
  Member = Struct.new(:name, :outbox)

  def initialize
    @members = []
  end

  def enter(name)
    @members << (member = Member.new(name, Thread::SizedQueue.new(UNREAD)))
    say "* #{name} is here"
    member
  end

  def leave(member)
    member.outbox.close
    say "* #{member.name} has left" if @members.delete(member)
  end

  # It does not wait. A member who has not read the last hundred lines is thrown out.
  def say(line)
    @members.reject { |member| member.outbox.closed? }
      .each { |member| member.outbox.push("#{line}\n", timeout: 0) || member.outbox.close }
  end

  # The lines that are in the outboxes are still sent.
  def close
    say "* the chat ends now"
    @members.each { |member| member.outbox.close }
  end
end

def serve(client, room)
  client.timeout = 3600 # seconds, for each line
  client.write("Your name? ")
  name = client.gets(100)&.strip
  chat(client, room, name) unless name.to_s.empty?
rescue SystemCallError, IOError
  nil # the client has gone
ensure
  client.close
end

# Ends when the outbox is closed and empty. Then the task that reads ends, too.
def chat(client, room, name)
  member = room.enter(name)
  Heddle.run do
    Heddle.spawn(background: true, name: "reads from #{name}") do
      while (line = client.gets(1000)&.strip) && line != "/quit"
        room.say("#{name}: #{line}")
      end
      room.leave(member)
    end
    while (line = member.outbox.pop)
      client.write(line)
    end
  end
ensure
  room.leave(member) if member
end

usage = OptionParser.new("usage: ruby chat.rb [PORT]")
begin
  usage.parse!
  server = TCPServer.new("127.0.0.1", Integer(ARGV[0] || 7000))
rescue OptionParser::ParseError, ArgumentError, SystemCallError, SocketError => e
  abort "#{e.message}\n#{usage.banner}"
end

Heddle.scope do |scope|
  room = Room.new
  accepting = scope.spawn(name: "accepts") do
    loop do
      client = server.accept
      scope.spawn(name: "client", isolated: true) { serve(client, room) }
    end
  end
  %i[INT TERM].each { |signal| trap(signal) { accepting.cancel } }
  warn "nc 127.0.0.1 #{server.addr[1]}"

  accepting.wait
  server.close
  room.close
  scope.spawn(background: true) { sleep(5) && scope.tasks.each(&:cancel) } # (this task is the last of them)
end
warn "the chat has ended"
