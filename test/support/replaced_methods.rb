# frozen_string_literal: true

require "fileutils"
require "json"
require "socket"
require "timeout"
require "tmpdir"

# A use of each method that Heddle replaces. A block is given a folder with a file ("a") and an empty folder ("sub");
# its value must be the same each time.
module ReplacedMethods
  ALL = {
    "File.stat" => ->(dir) { File.stat("#{dir}/a").size },
    "File.lstat" => ->(dir) { File.lstat("#{dir}/a").size },
    "File.exist?" => ->(dir) { [File.exist?("#{dir}/a"), File.exist?("#{dir}/none")] },
    "File.file?" => ->(dir) { File.file?("#{dir}/a") },
    "File.directory?" => ->(dir) { File.directory?(dir) },
    "File.size" => ->(dir) { [File.size("#{dir}/a"), File.open("#{dir}/a") { |file| File.size(file) }] },
    "File.size?" => ->(dir) { File.size?("#{dir}/a") },
    "File.zero?" => ->(dir) { File.zero?("#{dir}/a") }, # rubocop:disable Style/FileEmpty
    "File.ftype" => ->(dir) { File.ftype(dir) },
    "File.mtime" => ->(dir) { File.mtime(dir).class },
    "File.atime" => ->(dir) { File.atime(dir).class },
    "File.ctime" => ->(dir) { File.ctime(dir).class },
    "File.readable?" => ->(dir) { File.readable?("#{dir}/a") },
    "File.writable?" => ->(dir) { File.writable?("#{dir}/a") },
    "File.executable?" => ->(dir) { File.executable?(dir) },
    "File.symlink?" => ->(dir) { File.symlink?(dir) },
    "File#initialize" => lambda do |dir|
      [File.new("#{dir}/a").close, File.open("#{dir}/a", "r", 0o600, textmode: true, &:read),
       File.open(IO.sysopen("#{dir}/a"), mode: "r", path: "path", &:path), File.open(IO.sysopen("#{dir}/a"), &:read),
       File.open(IO.sysopen("#{dir}/a"), "r", &:read), File.open("#{dir}/a", nil, 0o600, &:read)]
    end,
    "File#flock" => ->(dir) { File.open("#{dir}/a") { |file| file.flock(File::LOCK_EX) } },
    "IO.read" => lambda do |dir|
      [File.read("#{dir}/a"), File.read("#{dir}/a", 2, 1), File.read("#{dir}/a", mode: "rb"),
       ReplacedMethods.with_fifo(dir) { |fifo| File.read(fifo) }]
    end,
    "IO.binread" => ->(dir) { [File.binread("#{dir}/a"), File.binread("#{dir}/a", 2, 1)] },
    "IO.readlines" => ->(dir) { [File.readlines("#{dir}/a"), File.readlines("#{dir}/a", "e", chomp: true)] },
    "IO.foreach" => ->(dir) { [File.foreach("#{dir}/a") { nil }, File.foreach("#{dir}/a", chomp: true).to_a] },
    "IO.write" => ->(dir) { [File.write("#{dir}/b", "text"), File.write("#{dir}/b", "x", 1), File.read("#{dir}/b")] },
    "IO.binwrite" => ->(dir) { [File.binwrite("#{dir}/b", "text"), File.binwrite("#{dir}/b", "x", 1)] },
    "IO.sysopen" => ->(dir) { IO.for_fd(IO.sysopen("#{dir}/a")).close },
    "IO.popen" => ->(_) { [IO.popen(%w[echo a], &:read), IO.popen({ "A" => "b" }, "echo $A", err: :out).read] },
    "IO.copy_stream" => ->(dir) { [[], [2, 1]].map { |part| IO.copy_stream("#{dir}/a", "#{dir}/c", *part) } },
    "IO#close" => ->(_) { IO.pipe.map(&:close) },
    "IO#close_read" => ->(_) { IO.popen("cat", "r+") { |io| [io.close_read, io.close_write] } },
    "IO#close_write" => ->(_) { IO.popen("cat", "r+") { |io| [io.close_write, io.read] } },
    "IO#reopen" => ->(dir) { IO.pipe.first.reopen("#{dir}/a", "r").read },
    "IO#write" => ->(_) { IO.pipe.then { |from, to| [to.write("a", :b), to.puts("x", 1), to.close, from.read] } },
    "IO#readpartial" => ->(_) { ReplacedMethods.with_text { |io| [io.readpartial(2), io.readpartial(9, +"")] } },
    "IO#read" => lambda do |dir|
      read = ->(io) { [io.read(1), io.read(2, +""), io.read, io.read(1), io.read] }
      [File.open("#{dir}/a", &read), ReplacedMethods.with_text(&read)]
    end,
    "IO#syswrite" => ->(_) { IO.pipe.then { |from, to| [to.syswrite("text"), to.syswrite(:x), from.sysread(9)] } },
    "IO#sysread" => ->(_) { ReplacedMethods.with_text { |io| [io.sysread(2), io.sysread(9, +"")] } },
    "IO#gets" => ->(_) { ReplacedMethods.with_text { |io| [io.gets, io.gets(chomp: true), io.gets] } },
    "IO#readline" => ->(_) { ReplacedMethods.with_text { |io| [io.readline, io.readline(chomp: true)] } },
    "IO#getc" => ->(_) { ReplacedMethods.with_text { |io| [io.getc, io.readchar, io.getc] } },
    "IO#getbyte" => ->(_) { ReplacedMethods.with_text { |io| [io.getbyte, io.readbyte, io.getbyte] } },
    "IO#pwrite" => ->(dir) { File.open("#{dir}/a", "r+") { |file| file.pwrite("x", 1) } },
    "IO#flush" => ->(dir) { File.open("#{dir}/flushed", "w") { |file| file.write("x") && file.flush.equal?(file) } },
    "IO#fsync" => ->(dir) { File.open("#{dir}/a", "r+", &:fsync) },
    "IO#fdatasync" => ->(dir) { File.open("#{dir}/a", "r+", &:fdatasync) },
    "Dir.exist?" => ->(dir) { Dir.exist?(dir) },
    "Dir.chdir" => ->(dir) { Dir.chdir(dir) { File.exist?("a") } },
    "Dir.fchdir" => ->(dir) { Dir.open(dir) { |io| Dir.fchdir(io.fileno) { File.exist?("a") } } },
    "Dir#chdir" => ->(dir) { Dir.open(dir) { |io| io.chdir { File.exist?("a") } } },
    "Dir.children" => ->(dir) { [Dir.children(dir).sort, Dir.children(dir, encoding: "UTF-8").first.encoding.to_s] },
    "Dir.entries" => ->(dir) { Dir.entries(dir).sort },
    "Dir.empty?" => ->(dir) { [Dir.empty?(dir), Dir.empty?("#{dir}/sub"), Dir.empty?("#{dir}/a")] },
    "Dir.glob" => ->(dir) { [Dir.glob("*", base: dir), Dir.glob(%w[a s*], File::FNM_DOTMATCH, base: dir, sort: true)] },
    "Dir.[]" => ->(dir) { [Dir["a", "s*", base: dir], Dir["*", base: dir]] },
    "Dir.each_child" => ->(dir) { [Dir.each_child(dir) { nil }, Dir.each_child(dir).to_a.sort] },
    "Dir.foreach" => ->(dir) { [Dir.foreach(dir) { nil }, Dir.foreach(dir).to_a.sort] },
    "Dir#children" => ->(dir) { Dir.open(dir, &:children).sort },
    "Dir#each" => ->(dir) { Dir.open(dir) { |open| [open.each { nil }.equal?(open), open.each.to_a.sort] } },
    "Dir#each_child" => lambda do |dir|
      Dir.open(dir) { |open| [open.each_child { nil }.equal?(open), open.each_child.to_a.sort] }
    end,
    "Kernel.spawn" => ->(_) { Process.wait2(Kernel.spawn("true")).last.to_i },
    "Kernel.system" => ->(_) { [Kernel.system("true"), Kernel.system({ "A" => "b" }, "exit 1", in: :close)] },
    "Kernel#spawn" => ->(_) { Process.wait2(spawn("true", in: :close)).last.to_i },
    "Kernel.sleep" => ->(_) { [Kernel.sleep(0).class, Kernel.sleep(0.001).class] },
    "Kernel#sleep" => ->(_) { [sleep(0).class, sleep(0.001).class] },
    "Kernel#system" => ->(_) { [system("true"), system("false"), system("/none")] },
    "Process.spawn" => lambda do |dir|
      ReplacedMethods.with_fifo(dir) do |fifo|
        Process.wait2(Process.spawn("cat", in: fifo, out: "#{dir}/b")).last.to_i
      end
    end,
    "Process._fork" => ->(_) { Process.wait2(fork { exit!(3) }).last.exitstatus },
    "Process.daemon" => lambda do |dir|
      Process.wait(fork { Process.daemon && (File.rename("#{dir}/sub", "#{dir}/done") || exit!) })
      sleep(0.005) until Dir.exist?("#{dir}/done")
    end,
    "Ractor.new" => lambda do |_|
      ractor = Ractor.new(3, name: "a") { |number| number + 1 }
      [ractor.name, ractor.respond_to?(:value) ? ractor.value : ractor.take]
    end,
    "Fiber#raise" => lambda do |_|
      Fiber.new { Fiber.yield }.tap(&:resume).raise(ArgumentError, "text")
    rescue ArgumentError => e
      e.message
    end,
    "Fiber.set_scheduler" => ->(_) { Thread.new { Fiber.set_scheduler(nil) }.value },
    "Fiber#kill" => ->(_) { Fiber.new { Fiber.yield }.tap(&:resume).kill.alive? },
    "Thread#raise" => lambda do |_|
      thread = Thread.new { sleep }.tap { |one| one.report_on_exception = false }
      thread.raise(ArgumentError, "text")
      thread.join
    rescue ArgumentError => e
      e.message
    end,
    "Thread#wakeup" => lambda do |_|
      thread = Thread.new { sleep && :woken }
      Thread.pass until thread.stop?
      thread.wakeup.value
    end,
    "Thread#run" => lambda do |_|
      thread = Thread.new { sleep && :woken }
      Thread.pass until thread.stop?
      thread.run.value
    end,
    "Thread.stop" => lambda do |_|
      thread = Thread.new { Thread.stop.inspect }
      Thread.pass until thread.stop?
      thread.run.value
    end,
    "Thread.handle_interrupt" => ->(_) { [1, 2].each { |i| Thread.handle_interrupt(IOError => :never) { break i } } },
    "Thread::Mutex#sleep" => lambda do |_|
      lock = Thread::Mutex.new.tap(&:lock)
      seconds = lock.sleep(0.001) # nil when the time was over, else full seconds, by a clock that may just have ticked
      [lock.owned?, seconds.nil? || seconds.is_a?(Integer)]
    ensure
      lock&.unlock # Ruby crashes when it frees one that is locked after the fiber that has locked it (mutex_free)
    end,
    "Thread::ConditionVariable#wait" => lambda do |_|
      lock = Thread::Mutex.new
      lock.synchronize { Thread::ConditionVariable.new.wait(lock, 0.001) }
      :ended
    end,
    "Timeout.timeout" => ->(_) { Timeout.timeout(200) { |seconds| seconds } },
    "Timeout#timeout" => ->(_) { Class.new { include Timeout }.new.instance_eval { timeout(200) { :value } } },
    "Addrinfo.getaddrinfo" => ->(_) { Addrinfo.getaddrinfo("127.0.0.1", "discard", nil, :STREAM).map(&:ip_port) },
    "Addrinfo.tcp" => ->(_) { Addrinfo.tcp("127.0.0.1", "discard").inspect_sockaddr },
    "Addrinfo.udp" => ->(_) { Addrinfo.udp("127.0.0.1", 9).inspect_sockaddr },
    "Addrinfo#getnameinfo" => ->(_) { Addrinfo.tcp("127.0.0.1", 9).getnameinfo(Socket::NI_NUMERICSERV) },
    "Socket.getaddrinfo" => ->(_) { Socket.getaddrinfo("127.0.0.1", "discard", nil, :STREAM) },
    "Socket.getnameinfo" => lambda do |_|
      [["AF_INET", 9, "127.0.0.1"], Socket.sockaddr_in(9, "127.0.0.1")].map { |given| Socket.getnameinfo(given) }
    end,
    "Socket.pack_sockaddr_in" => ->(_) { Socket.pack_sockaddr_in("discard", "127.0.0.1").bytes },
    "Socket.sockaddr_in" => ->(_) { Socket.sockaddr_in(9, "127.0.0.1").bytes },
    "Socket.tcp" => lambda do |_|
      port = ReplacedMethods.server.local_address.ip_port
      [Socket.tcp("localhost", port).close, Socket.tcp("127.0.0.1", port, connect_timeout: 200, &:class).name]
    end,
    "Socket#connect" => lambda do |_|
      address = ReplacedMethods.server.local_address
      Socket.new(:INET, :STREAM).connect(address)
    end,
    "BasicSocket#close_read" => ->(_) { UNIXSocket.pair.map(&:close_read) },
    "BasicSocket#close_write" => ->(_) { UNIXSocket.pair.then { |one, other| [one.close_write, other.read] } },
    "TCPSocket#initialize" => lambda do |_|
      port = ReplacedMethods.server.local_address.ip_port
      sockets = [TCPSocket.new("localhost", port), TCPSocket.open("127.0.0.1", port, connect_timeout: 200),
                 TCPSocket.new("localhost", port.to_s, nil, nil, connect_timeout: 200)]
      sockets.map { |socket| socket.remote_address.ip_port == port }
    end,
    "TCPServer#initialize" => ->(_) { TCPServer.new("127.0.0.1", 0).addr.first },
    "UDPSocket#bind" => ->(_) { UDPSocket.new.bind("127.0.0.1", 0) },
    "UDPSocket#connect" => ->(_) { UDPSocket.new.connect("127.0.0.1", 9) },
    "BasicSocket#send" => ->(_) { UNIXSocket.pair.then { |one, other| [one.send("text", 0), other.recv(9)] } },
    "BasicSocket#recv" => ->(_) { UNIXSocket.pair.then { |one, other| one.write("text") && other.recv(2, 0, +"") } },
    "BasicSocket#__sendmsg" => ->(_) { UNIXSocket.pair.then { |one, other| [one.sendmsg("text"), other.recv(9)] } },
    "BasicSocket#__recvmsg" => ->(_) { UNIXSocket.pair.then { |one, other| one.write("text") && other.recvmsg.first } },
    "BasicSocket#__read_nonblock" => lambda do |_|
      UNIXSocket.pair.then { |one, other| one.write("text") && other.read_nonblock(9) }
    end,
    "TCPServer#accept" => ->(_) { ReplacedMethods.accepted(TCPServer.new("127.0.0.1", 0)).class },
    "UNIXServer#accept" => ->(dir) { ReplacedMethods.accepted(UNIXServer.new("#{dir}/socket")).class },
    "Socket#accept" => lambda do |_|
      ReplacedMethods.accepted(Socket.new(:INET, :STREAM).tap { |one| one.listen(1) }).map(&:class)
    end,
    "Socket#recvfrom" => lambda do |_|
      Socket.pair(:UNIX, :STREAM).then { |one, other| one.write("text") && other.recvfrom(9).first }
    end,
    "UDPSocket#send" => ->(_) { UDPSocket.new.send("x", 0, "127.0.0.1", 9) },
    "IPSocket#addr" => ->(_) { TCPServer.new("127.0.0.1", 0).then { |server| [server.addr[2], server.addr(true)[3]] } },
    "IPSocket#peeraddr" => lambda do |_|
      TCPSocket.new("127.0.0.1", ReplacedMethods.server.local_address.ip_port).peeraddr(true).last
    end,
    "IPSocket#recvfrom" => lambda do |_|
      socket = UDPSocket.new.tap { |one| one.bind("127.0.0.1", 0) }
      socket.send("x", 0, "127.0.0.1", socket.local_address.ip_port)
      socket.recvfrom(1).first
    end
  }.freeze
  Ractor.make_shareable(ALL)

  # (Plain Ruby 3.4 hangs now and then in a process that was forked in a Ractor and forks again. In plain Ruby 3.3,
  # about once in some hundred runs, the Ractor after one that has started a process never begins.)
  START_PROCESSES = %w[IO.popen IO#close_read IO#close_write Kernel.spawn Kernel.system Kernel#spawn Kernel#system
                       Process.spawn Process._fork].freeze
  NOT_IN_RACTORS = ["Process.daemon", *(START_PROCESSES if RUBY_VERSION < "3.4")].freeze

  # Replaces every method by one that counts its calls and calls the one before, as libraries do.
  module Library
    CALLS = Hash.new(0)

    # @param style [String]
    def self.replace_all(style)
      ALL.each_key do |name|
        owner, method = ReplacedMethods.owner_and_name(name)
        visibility = owner.private_method_defined?(method) ? :private : :public
        __send__(style, owner, method, name)
        owner.__send__(visibility, method) unless style == "prepend"
      rescue NameError
        nil # this Ruby has no such method
      end
    end

    def self.alias(owner, method, name)
      owner.alias_method(:"library_#{method}", method)
      owner.define_method(method) do |*arguments, **options, &block|
        CALLS[name] += 1
        __send__(:"library_#{method}", *arguments, **options, &block)
      end
    end

    def self.bind(owner, method, name)
      original = owner.instance_method(method)
      owner.define_method(method) do |*arguments, **options, &block|
        CALLS[name] += 1
        original.bind_call(self, *arguments, **options, &block)
      end
    end

    def self.prepend(owner, method, name)
      owner.prepend(Module.new do
        define_method(method) do |*arguments, **options, &block|
          CALLS[name] += 1
          super(*arguments, **options, &block)
        end
      end)
    end
  end

  class << self
    # @return [Array(Module, Symbol)]
    def owner_and_name(name)
      owner, separator, method = name.partition(/[.#](?=[^.#]+\z)/)
      owner = Object.const_get(owner)
      [separator == "." ? owner.singleton_class : owner, method.to_sym]
    end

    # Yields the path of a FIFO into which a thread writes.
    def with_text
      from, to = IO.pipe
      to.write("ab\nc\n")
      to.close
      yield from
    ensure
      from.close
    end

    def with_fifo(dir)
      fifo = "#{dir}/fifo"
      File.mkfifo(fifo)
      writer = Thread.new { File.write(fifo, "text") }
      yield(fifo).tap { writer.join }
    end

    # @return [BasicSocket, Array] a connection to this server
    def accepted(server)
      client = server.local_address.connect
      server.accept.tap { client.close }
    end

    # @return [TCPServer] kept until the next one
    def server = Thread.current[:server] = TCPServer.new("127.0.0.1", 0)

    # Makes each of the uses, in a process of its own, and prints what came of it, as JSON.
    #
    # @param style [String, nil] of a library that replaces the methods, too
    # @param order [String, nil] "before" Heddle is loaded, "between" that and the first scheduler, or "after" that;
    #   nil: without Heddle
    # @param places [Array<String>] see #at
    def main(style, order, *places)
      Library.replace_all(style) if order == "before"
      require "heddle" if order
      Library.replace_all(style) if order == "between"
      Heddle.run { nil } if order
      Library.replace_all(style) if style && order == "after"
      ALL.to_a.product(places) do |(name, use), place|
        next if place.start_with?("ractor") && NOT_IN_RACTORS.include?(name)

        Library::CALLS.clear
        outcome = at(place, use)
        puts(JSON.generate([place, name, outcome, style.nil? || Library::CALLS[name].positive?]))
      end
      $stdout.flush
      exit!(true) # (Ruby 3.3 hangs now and then at the end of a process that has had Ractors with several threads)
    end

    # The value of the use, or its exception, in words.
    def outcome(use)
      dir = Dir.mktmpdir("heddle-test")
      File.write("#{dir}/a", "text")
      Dir.mkdir("#{dir}/sub")
      use.call(dir).inspect
    rescue Exception => e
      "#{e.class}: #{e.message.gsub(dir, "dir")}"
    ensure
      FileUtils.rm_rf(dir)
    end

    private

    def at(place, use)
      case place
      when "thread" then outcome(use)
      when "scheduler" then Heddle.run { outcome(use) }
      when "thread, collecting" then collecting { outcome(use) }
      when "scheduler, collecting" then Heddle.run { collecting { outcome(use) } }
      when "handler" then in_handler(use) { sleep(0.002) }
      when "handler while all wait" then Heddle.run { in_handler(use) { sleep(0.002) } }
      when "handler while one computes" then Heddle.run { in_handler(use) { nil } }
      when "ractor" then value_of(Ractor.new(use) { |given| ReplacedMethods.outcome(given) })
      else value_of(Ractor.new(use) { |given| Heddle.run { ReplacedMethods.outcome(given) } })
      end
    end

    # With a collection at each new object: what C code holds, and nothing else, has to be seen by it.
    def collecting
      GC.stress = 1 # none of all objects, which takes long
      yield
    ensure
      GC.stress = false
    end

    # Makes the use in a signal handler; calls the block until that has ended.
    def in_handler(use)
      said = nil
      trap("USR1") { said = outcome(use) }
      Process.kill("USR1", Process.pid)
      yield until said
      said
    end

    def value_of(ractor) = ractor.respond_to?(:value) ? ractor.value : ractor.take
  end
end
