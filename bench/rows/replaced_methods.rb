# frozen_string_literal: true

require "socket"
require "timeout"
require "tmpdir"

module Bench
  # What the methods that Heddle replaces cost a program, or a thread, that has no scheduler: in plain Ruby, when Heddle
  # is loaded, and when the process has had a scheduler before (then the methods are in place). A call of each is here
  # as source; the instance variables are those of the Place.
  module ReplacedMethods
    CALLS = {
      "File.stat" => "File.stat(@path)",
      "File.lstat" => "File.lstat(@path)",
      "File.exist?" => "File.exist?(@path)",
      "File.file?" => "File.file?(@path)",
      "File.directory?" => "File.directory?(@path)",
      "File.size" => "File.size(@path)",
      "File.size?" => "File.size?(@path)",
      "File.zero?" => "File.zero?(@path)",
      "File.ftype" => "File.ftype(@path)",
      "File.mtime" => "File.mtime(@path)",
      "File.atime" => "File.atime(@path)",
      "File.ctime" => "File.ctime(@path)",
      "File.readable?" => "File.readable?(@path)",
      "File.writable?" => "File.writable?(@path)",
      "File.executable?" => "File.executable?(@path)",
      "File.symlink?" => "File.symlink?(@path)",
      "File#initialize" => "File.open(@path) { nil }",
      "File#flock" => "@file.flock(File::LOCK_SH)",
      "File#read" => "@file.pos = 0; @file.read",
      "File#read of so much" => "@file.pos = 0; @file.read(4)",
      "IO#read of so much" => "@ends.last << 'text'; @ends.first.read(4)",
      "IO#syswrite" => "@null.syswrite('text')",
      "IO.read" => "File.read(@path)",
      "IO.binread" => "File.binread(@path)",
      "IO.readlines" => "File.readlines(@path)",
      "IO.foreach" => "File.foreach(@path) { nil }",
      "IO.write" => "File.write(@other, 'text')",
      "IO.binwrite" => "File.binwrite(@other, 'text')",
      "IO.sysopen" => "IO.for_fd(IO.sysopen(@path)).close",
      "IO.popen" => "IO.popen('true') { nil }",
      "IO.copy_stream" => "IO.copy_stream(@path, @other)",
      "IO#close" => "IO.pipe.each(&:close)",
      "IO#close_read, IO#close_write" => "IO.popen('cat', 'r+') { |io| io.close_write; io.close_read }",
      "IO#reopen" => "@copy.reopen(@null)",
      "IO#write, buffered" => "@null.write('text')",
      "IO#write, sync" => "@sync.write('text')",
      "IO#flush" => "@null.write('text'); @null.flush",
      "IO#readpartial, IO#sysread" => "@ends.last << 'text'; @ends.first.readpartial(2); @ends.first.sysread(2)",
      "IO#gets" => "@lines.gets || @lines.rewind",
      "IO#readline" => "@lines.rewind; @lines.readline",
      "IO#getc, IO#getbyte" => "@lines.rewind; @lines.getc; @lines.getbyte",
      "IO#pwrite" => "@writable.pwrite('x', 0)",
      "IO#fsync, IO#fdatasync" => "@writable.fdatasync; @writable.fsync",
      "Dir.exist?" => "Dir.exist?(@dir)",
      "Dir.children" => "Dir.children(@dir)",
      "Dir.entries" => "Dir.entries(@dir)",
      "Dir.empty?" => "Dir.empty?(@dir)",
      "Dir.glob" => "Dir.glob('*', base: @dir)",
      "Dir.[]" => "Dir['*', base: @dir]",
      "Dir.each_child" => "Dir.each_child(@dir) { nil }",
      "Dir.foreach" => "Dir.foreach(@dir) { nil }",
      "Dir#children" => "@folder.children",
      "Dir#each" => "@folder.each { nil }",
      "Dir#each_child" => "@folder.each_child { nil }",
      "Dir.chdir, Dir.fchdir" => "Dir.chdir(@dir) { nil }; Dir.fchdir(@folder.fileno) { nil }",
      "Dir#chdir" => "@folder.chdir { nil }",
      "Kernel.system" => "Kernel.system('true')",
      "Kernel.sleep" => "Kernel.sleep(0)",
      "Kernel#sleep" => "sleep(0)",
      "Kernel#system" => "system('true')",
      "Kernel#spawn" => "Process.wait(spawn('true'))",
      "Process.spawn" => "Process.wait(Process.spawn('true'))",
      "Process._fork" => "Process.wait(fork { exit!(true) })",
      "Fiber#raise" => "Fiber.new { Fiber.yield }.tap(&:resume).raise(@error) rescue nil",
      "Fiber#kill" => "Fiber.new { Fiber.yield }.tap(&:resume).kill",
      "Thread#raise" => "Thread.new { sleep }.then { |one| (one.report_on_exception = false) || one.raise(@error) }",
      "Thread#wakeup" => "Thread.current.wakeup",
      "Thread#run" => "Thread.current.run",
      "Thread.stop" => "Thread.new { Thread.stop }.then { |one| Thread.pass until one.stop?; one.run.join }",
      "Thread.handle_interrupt" => "Thread.handle_interrupt(IOError => :never) { nil }",
      "Fiber.set_scheduler" => "Fiber.set_scheduler(nil)",
      "Thread::Mutex#sleep" => "@lock.synchronize { @lock.sleep(0) }",
      "Thread::ConditionVariable#wait" => "@lock.synchronize { @condition.wait(@lock, 0) }",
      "Timeout.timeout" => "Timeout.timeout(5) { nil }",
      "Timeout#timeout" => "timeout(5) { nil }",
      "Addrinfo.getaddrinfo" => "Addrinfo.getaddrinfo('127.0.0.1', 9)",
      "Addrinfo.tcp" => "Addrinfo.tcp('127.0.0.1', 9)",
      "Addrinfo.udp" => "Addrinfo.udp('127.0.0.1', 9)",
      "Addrinfo#getnameinfo" => "@address.getnameinfo(@numeric)",
      "Socket.getaddrinfo" => "Socket.getaddrinfo('127.0.0.1', 9)",
      "Socket.getnameinfo" => "Socket.getnameinfo(@packed, @numeric)",
      "Socket.pack_sockaddr_in" => "Socket.pack_sockaddr_in(9, '127.0.0.1')",
      "Socket.sockaddr_in" => "Socket.sockaddr_in(9, '127.0.0.1')",
      "Socket.tcp" => "Socket.tcp('127.0.0.1', @port).close; @server.accept.close",
      "Socket#connect" => "Socket.new(:INET, :STREAM).tap { |s| s.connect(@address) }.close; @server.accept.close",
      "BasicSocket#close_read, #close_write" => "UNIXSocket.pair.each(&:close_read).each(&:close_write)",
      "TCPSocket#initialize" => "TCPSocket.new('127.0.0.1', @port).close; @server.accept.close",
      "TCPServer#initialize" => "TCPServer.new('127.0.0.1', 0).close",
      "UDPSocket#bind" => "UDPSocket.new.tap { |socket| socket.bind('127.0.0.1', 0) }.close",
      "UDPSocket#connect" => "@udp.connect('127.0.0.1', 9)",
      "UDPSocket#send, IPSocket#recvfrom" => "@receiver.send('x', 0, '127.0.0.1', @udp_port); @receiver.recvfrom(1)",
      "BasicSocket#send, #recv" => "@client.send('x', 0); @accepted.recv(1)",
      "BasicSocket#__sendmsg, #__recvmsg" => "@client.sendmsg('x'); @accepted.recvmsg(1)",
      "BasicSocket#__read_nonblock" => "@client << 'x'; @accepted.read_nonblock(1)",
      "Socket#recvfrom" => "@client.send('x', 0); @stream.recvfrom(1)",
      "TCPServer#accept" => "TCPSocket.new('127.0.0.1', @port).close; @server.accept.close",
      "UNIXServer#accept" => "UNIXSocket.new(@socket).close; @local.accept.close",
      "Socket#accept" => "TCPSocket.new('127.0.0.1', @port).close; @listener.accept.first.close",
      "IPSocket#addr" => "@server.addr",
      "IPSocket#peeraddr" => "@client.peeraddr"
    }.freeze

    # Where the calls are made.
    class Place
      include Timeout

      def initialize
        @dir = Dir.mktmpdir("place", ENV.fetch("BENCH_FOLDER"))
        @path, @other = %w[a b].map { |name| File.join(@dir, name).tap { |path| File.write(path, "text") } }
        @file = File.open(@path)
        @lines = File.open(File.join(@dir, "lines"), "w+") { |file| file.write("text\n" * 100) && File.open(file.path) }
        @ends = IO.pipe
        @folder = Dir.new(@dir)
        @writable = File.open(@other, "r+")
        @null = File.open(File::NULL, "w")
        @sync = File.new(File::NULL, "w")
        @sync.sync = true
        @copy = File.open(File::NULL, "w")
        @lock = Thread::Mutex.new
        @condition = Thread::ConditionVariable.new
        @error = IOError.new("text")
        make_sockets
      end

      # @return [Proc] that makes the call as often as its argument says
      def compile(call)
        instance_eval(<<~RUBY, __FILE__, __LINE__ + 1)
          lambda do |number|
            while number > 0
              #{call} # File.stat(@path)
              number -= 1
            end
          end
        RUBY
      end

      private

      def make_sockets
        @server = TCPServer.new("127.0.0.1", 0)
        @address = @server.local_address
        @packed = @address.to_sockaddr
        @port = @address.ip_port
        @numeric = Socket::NI_NUMERICHOST | Socket::NI_NUMERICSERV
        @client = TCPSocket.new("127.0.0.1", @port)
        @accepted = @server.accept
        @stream = Socket.for_fd(@accepted.fileno)
        @listener = Socket.for_fd(@server.fileno)
        [@stream, @listener].each { |io| io.autoclose = false }
        @socket = File.join(@dir, "socket")
        @local = UNIXServer.new(@socket)
        @udp = UDPSocket.new
        @receiver = UDPSocket.new.tap { |socket| socket.bind("127.0.0.1", 0) }
        @udp_port = @receiver.local_address.ip_port
      end
    end

    # A folder that is gone when the runner is.
    folder = lambda do |**|
      path = Dir.mktmpdir("heddle-bench")
      at_exit { FileUtils.rm_rf(path) }
      [{ "BENCH_FOLDER" => path }, {}]
    end

    Bench.group("replaced_methods", "What replaced methods cost where no scheduler runs",
                peers: %w[plain loaded used], rounds: 60, share: true, keep: true, best: true, setup: folder) do
      place = nil
      CALLS.each do |name, call|
        compiled = nil
        Bench.row(name, name, unit: "call", operations: 100_000, seconds: 0.003,
                              goal: { "loaded" => 1.05, "used" => 1.05 }) do |peer, n|
          compiled ||= (place ||= Place.new).compile(call)
          GC.disable
          peer.run { peer.measure { compiled.call(n) } }
          GC.enable
          nil
        end
      end
    end
  end
end
