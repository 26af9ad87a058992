# frozen_string_literal: true

require_relative "internal/ruby_features"

# The register of Heddle's changes to Ruby's own classes.
module Heddle
  # One change that Heddle makes to Ruby's own classes; see guides/patches.md, and CoreExt for how they are made.
  #
  # @!attribute [r] name
  #   @return [Symbol] the name by which HEDDLE_WITHOUT switches it off
  # @!attribute [r] rubies
  #   @return [String] the Rubies that it is for: "all", or their versions
  # @!attribute [r] reason
  #   @return [String] the behaviour of Ruby without it
  # @!attribute [r] bug
  #   @return [Integer, nil] the number of the report in Ruby's bug tracker
  # @!attribute [r] files
  #   @return [Array<String>] its source files, below the root of the repository or gem
  # @!attribute [r] test
  #   @return [String] the file with its tests
  # @!attribute [r] state
  #   @return [Symbol] :active, :switched_off (by HEDDLE_WITHOUT or HEDDLE_SAFE), :not_needed (by this Ruby), or
  #     :not_possible (this build of Ruby does not show what it needs)
  # @!attribute [r] places
  #   @private
  # @!attribute [r] kept
  #   @private
  # @!attribute [r] kept_visibility
  #   @private
  Patch = Data.define(:name, :rubies, :reason, :bug, :files, :test, :state, :places, :kept, :kept_visibility) do
    # @return [Boolean] is it in place, or will it be with the first scheduler of the process?
    def active? = state == :active

    # @private The file to load.
    def ruby_file = files.find { |file| file.end_with?(".rb") }

    # @return [String]
    def inspect = "#<#{self.class} #{name}: #{state.to_s.tr("_", " ")}>"
  end

  # The register of the patches.
  module Patches
    # The environment variable that names unwanted patches, separated by commas.
    SWITCH = "HEDDLE_WITHOUT"
    # Set to 1, this environment variable switches off the patches that write to places in Ruby's structs, which are
    # found when Heddle is loaded.
    SAFE_SWITCH = "HEDDLE_SAFE"
    @all = []

    class << self
      # @return [Array<Patch>] in the order in which they are put in place
      attr_reader :all

      # @param name [Symbol]
      # @return [Patch]
      def [](name) = all.find { |patch| patch.name == name }

      # Loads the files of the active patches.
      def load(patches)
        patches.select(&:active?).filter_map(&:ruby_file).each { |file| require_relative "../../#{file}" }
      end

      private

      # Adds an entry to the register.
      #
      # @param name [Symbol]
      # @param rubies [String] the Rubies that the patch is for
      # @param reason [String]
      # @param files [Array<String>] in lib/heddle/core_ext/ (Ruby) or in ext/heddle/ (C)
      # @param places [Hash] where its methods go ("IO#" into the class, "IO." into its singleton class) => the modules
      #   in CoreExt that hold them; and the names of methods that stay, but get a second name, for code that must not
      #   call a method that a program has overridden
      # @param needed [Boolean] does this Ruby need it?
      # @param found [Boolean, nil] of a patch that writes to a place in Ruby's structs: is the place known?
      # @param kept [String] how the second names of Ruby's own methods begin. A method that is replaced twice needs
      #   another beginning, because the later patch calls the earlier one
      def patch(name, rubies, reason, files, places = {}, needed: true, found: nil, bug: nil, kept: "__heddle_",
                kept_visibility: :private)
        state = unwanted.include?(name.to_s) || (safe? && !found.nil?) ? :switched_off : :active
        state = :not_possible if found == false
        state = :not_needed unless needed
        files = files.map { |file| "#{file.end_with?(".c") ? "ext/heddle" : "lib/heddle/core_ext"}/#{file}" }
        test = "test/core_ext/#{name}_test.rb"
        @all << Patch.new(name:, rubies:, reason:, bug:, files:, test:, state:, places:, kept:,
                          kept_visibility:)
      end

      def unwanted
        @unwanted ||= ENV.fetch(SWITCH, "").split(",").map(&:strip).reject(&:empty?)
      end

      def safe? = !["", "0"].include?(ENV.fetch(SAFE_SWITCH, ""))

      # Ends the register. All Ractors can read it then.
      def complete
        unknown = unwanted - @all.map { |patch| patch.name.to_s }
        if unknown.any?
          raise ArgumentError, "#{SWITCH}: there is no patch #{unknown.join(", ")}; these can be switched off: " \
                               "#{@all.map(&:name).join(", ")}"
        end

        FiberInsides.leave_blocking unless self[:callers_fiber].active?
        FiberInsides.leave_matches unless self[:match_apart].active?
        FiberInsides.leave_the_rest if safe?
        StackPool.leave unless self[:warm_stacks].active?
        Ractor.make_shareable(@all)
        Ractor.make_shareable(@unwanted)
      end
    end

    patch(:service_names, "all",
          "With a scheduler, Ruby takes only a number for a port: it looks for the name of a service (\"http\") " \
          "as if it were a host, and fails.",
          %w[core_ext/service_names.c],
          { "Addrinfo." => "ServiceNames::ForAddrinfo", "Socket." => "ServiceNames::ForSocket",
            "TCPSocket#" => "ServiceNames::ForTCPSocket", "TCPServer#" => "ServiceNames::ForTCPServer",
            "UDPSocket#" => "ServiceNames::ForUDPSocket" })
    patch(:fifo_redirection, "all",
          "If a program is started with a FIFO as its input or output, Ruby opens the FIFO in the parent, and " \
          "the whole thread waits for the other end.",
          %w[fifo_redirection.rb],
          { "Kernel." => %w[FifoRedirection::Spawn FifoRedirection::System],
            "Kernel#" => %w[FifoRedirection::Spawn FifoRedirection::System],
            "Process." => "FifoRedirection::Spawn", "IO." => "FifoRedirection::Popen" })
    patch(:fifo_open, "3.3",
          "Ruby opens a FIFO without asking the scheduler, and the whole thread waits for the other end.",
          %w[fifo_open.rb],
          { "IO." => "FifoOpen::Path", "IO#" => "FifoOpen::Reopen" },
          needed: !RubyFeatures::OPEN_IS_OFFLOADED, kept: "__heddle_path_")
    patch(:addrinfo_timeout, "4.0 and newer",
          "Ruby ignores the timeout if a scheduler resolves the name.",
          %w[addrinfo_timeout.rb],
          { "Addrinfo." => "AddrinfoTimeout" },
          needed: RubyFeatures::GETADDRINFO_HEEDS_TIMEOUT, kept: "__heddle_timed_")
    patch(:lookup_flags, "all",
          "Ruby tells the scheduler only the name: the flags of a lookup have no effect.",
          %w[lookup_flags.rb],
          { "Addrinfo." => "LookupFlags::OfAddrinfo", "Socket." => "LookupFlags::OfSocket" }, kept: "__heddle_flagged_")
    patch(:block_form_close, "all",
          "Ruby closes the IO at the end of the block without a call of IO#close, so the fibers that wait for " \
          "it are not woken.",
          %w[block_form_close.rb],
          { "IO." => "BlockFormClose" }, kept: "__heddle_block_")
    patch(:chdir, "all",
          "Ruby refuses to change the directory while a block of another thread has changed it. It does not refuse " \
          "while a block of another task has changed it.",
          %w[core_ext/chdir.c],
          { "Dir." => ["Chdir::Path", "Chdir::Descriptor"], "Dir#" => "Chdir::Path" })
    patch(:copy_stream, "all",
          "On Ruby 3.4 and newer a thread of the pool copies everything, and neither a close nor a cancel ends its " \
          "waits for sockets and pipes; on Ruby 3.3 the whole thread waits for the other end of a FIFO.",
          %w[copy_stream.rb core_ext/send_file.c],
          { "IO." => "CopyStream" })
    patch(:fiber_raise, "all",
          "If the other fiber was waiting in a scheduler, the calling fiber never goes on.",
          %w[core_ext/fiber_raise.c],
          { "Fiber#" => "FiberRaise" })
    patch(:file_lookup, "all",
          "Ruby 3.3 looks up a file without asking the scheduler, and the whole thread waits for the disk; Ruby " \
          "3.4 and newer hand each call to the pool, even if the kernel has the answer in memory.",
          %w[file_lookup.rb],
          { "File." => "FileLookup::Stat", "Dir." => "FileLookup::Exist" })
    patch(:file_open, "all",
          "Ruby 3.3 opens a FIFO without asking the scheduler, and the whole thread waits for the other end; Ruby " \
          "3.4 and newer hand each open to the pool, which costs three times what reading a small file does.",
          %w[file_open.rb core_ext/file_open.c],
          { "File#" => "FileOpen" })
    patch(:fsync, "all",
          "Ruby does not ask the scheduler, and the whole thread waits for the disk.",
          %w[fsync.rb],
          { "IO#" => "Fsync" })
    patch(:flock, "all",
          "Ruby does not ask the scheduler, and the whole thread waits for the owner of the lock.",
          %w[flock.rb],
          { "File#" => "Flock" })
    patch(:flush, "3.3 and 3.4",
          "Ruby flushes without asking the scheduler, and the whole thread waits if the pipe is full and in " \
          "blocking mode.",
          %w[io/flush.c],
          { "IO#" => "Flush" },
          needed: RubyFeatures::FLUSH_PASSES_BY_IO_WRITE, bug: 21_789)
    patch(:folder, "all",
          "Ruby 3.3 lists a folder without asking the scheduler, and the whole thread waits for the disk. Ruby 3.4 " \
          "and newer hand each entry to the pool, which takes up to 70 times as long as listing the folder without " \
          "it.",
          %w[folder.rb],
          { "Dir." => ["Folder::List", "Folder::Each", :open],
            "Dir#" => ["Folder::Open", :read, :tell, :seek, :rewind, :close] })
    patch(:fork, "all",
          "In the child of a fork nobody can write to an IO to which a task of the parent was writing. On Ruby 3.3 " \
          "and 3.4 the child also still has the scheduler of its parent.",
          %w[fork.rb core_ext/fork_child.c],
          { "Process." => "Fork" })
    patch(:handle_interrupt, "all",
          "Ruby holds back exceptions that are raised in a thread, but not the timeout or the cancel of a " \
          "fiber.",
          %w[core_ext/handle_interrupt.c],
          { "Thread." => "HandleInterrupt" }, kept_visibility: :public)
    patch(:io_close, "all",
          "Ruby 3.3 and 3.4 never wake the fibers that wait for the IO, and no Ruby wakes the fibers that wait " \
          "in IO.select.",
          %w[core_ext/io_close.c],
          { "IO#" => %w[IOClose IOHalfClose], "BasicSocket#" => "IOHalfClose" }, bug: 19_039)
    patch(:joined_write, "all",
          "With a scheduler Ruby writes several strings one after the other. The newline of a line over TCP is " \
          "a packet of its own, which takes 40 ms, and the text of another fiber can come between a line and " \
          "its newline.",
          %w[core_ext/joined_write.c],
          { "IO#" => "JoinedWrite" })
    patch(:direct_io, "all",
          "Ruby makes an IO::Buffer and calls a method of the scheduler for each transfer. Together these take as " \
          "long as the system call.",
          %w[core_ext/direct_io.c],
          { "IO#" => "DirectIO" })
    patch(:pwrite, "3.3 and 3.4",
          "Ruby calls the scheduler without the GVL (Ruby's global lock), which corrupts memory.",
          %w[core_ext/pwrite.c],
          { "IO#" => "Pwrite" }, needed: !RubyFeatures::PWRITE_HAS_THE_GVL)
    patch(:name_lookup, "all",
          "Ruby looks up the name of an address in a thread of its own, and the whole calling thread waits for " \
          "it.",
          %w[name_lookup.rb core_ext/name_lookup.c],
          { "Addrinfo#" => "NameLookup::ForAddrinfo", "Socket." => "NameLookup::ForSocket",
            "IPSocket#" => "NameLookup::ForIPSocket" }, kept: "__heddle_named_")
    patch(:direct_socket, "all",
          "Ruby has no hook for these methods: it releases the GVL (Ruby's global lock) for each attempt, and always " \
          "tries once before it waits, even if no data is there.",
          %w[core_ext/direct_socket.c],
          { "BasicSocket#" => "DirectSocket::ForBasicSocket", "UDPSocket#" => "DirectSocket::ForUDPSocket",
            "IPSocket#" => "DirectSocket::ForIPSocket", "Socket#" => %w[DirectSocket::ForSocket DirectSocket::Accept],
            "TCPServer#" => "DirectSocket::Accept", "UNIXServer#" => "DirectSocket::Accept" },
          kept: "__heddle_direct_")
    patch(:direct_sleep, "all",
          "Ruby calls a method of the scheduler for each sleep, which takes a quarter of the time of a sleep(0).",
          %w[core_ext/direct_sleep.c],
          { "Kernel#" => "DirectSleep", "Kernel." => "DirectSleep" })
    patch(:set_scheduler, "all",
          "Ruby drops the scheduler of the thread, with all of its tasks, even if the scheduler refuses to be " \
          "closed. And Ruby does not tell a scheduler which fiber has set it.",
          %w[set_scheduler.rb],
          { "Fiber." => "SetScheduler" })
    patch(:socket_connect, "3.3",
          "Ruby waits on another IO object with the same descriptor, so neither IO#timeout nor a close ends the " \
          "wait.",
          %w[socket_connect.rb],
          { "Socket#" => "SocketConnect" },
          needed: !RubyFeatures::CONNECT_WAITS_FOR_THE_SOCKET)
    patch(:tcp_connect, "all",
          "If you connect to a host by name, TCPSocket.new holds up the whole thread on Ruby 3.4 and newer, and " \
          "Socket.tcp starts two threads.",
          %w[tcp_connect.rb core_ext/tcp_connect.c],
          { "TCPSocket#" => "TCPSocketConnect", "Socket." => "SocketTCP" }, kept: "__heddle_numeric_")
    patch(:thread_calls, "all",
          "An exception that is raised in a thread with a scheduler may end only one fiber; Thread#wakeup wakes " \
          "nobody, and Thread.stop stops all fibers.",
          %w[fibers/thread_calls.c],
          { "Thread#" => "ThreadCalls", "Thread." => "ThreadStop" })
    patch(:mutex_sleep, "all",
          "In a fiber these methods do not return nil when their time is over.",
          %w[fibers/mutex_sleep.c],
          { "Thread::Mutex#" => "MutexSleep", "Thread::ConditionVariable#" => "ConditionWait" })
    patch(:timeout, "all",
          "For each block Ruby makes objects for an exception that is rarely raised, which takes five times as " \
          "long; and in a blocking fiber (`Fiber.new(blocking: true)`) on a thread with a scheduler, Ruby's timeout " \
          "interrupts whatever the thread does at that moment, not only this block.",
          %w[timeout.rb],
          { "Timeout." => "TimeoutBlock",
            "Timeout#" => ("TimeoutBlock" unless RubyFeatures::INCLUDED_TIMEOUT_CALLS_THE_MODULE) }.compact)
    patch(:whole_file, "all",
          "No other task runs while a large file is read; Ruby 3.3 opens a FIFO without asking the scheduler; " \
          "and from Ruby 3.4 on a cancelled File.write leaves a descriptor behind.",
          %w[whole_file.rb core_ext/whole_file.c],
          { "IO." => "WholeFile::ByPath", "IO#" => "WholeFile::Read" })
    patch(:direct_read, "all",
          "As with direct_io: for each transfer, Ruby makes an IO::Buffer and calls a method of the scheduler.",
          %w[core_ext/direct_read.c],
          { "IO#" => "DirectRead" }, kept: "__heddle_direct_")
    patch(:would_block_errors, "all",
          "An exception that says \"it would block\" has a backtrace, which nobody reads and which takes most " \
          "of the time.",
          %w[would_block_errors.rb core_ext/would_block_errors.c])
    patch(:ssl_would_block_errors, "all",
          "The backtrace of the exception takes most of the time, as for IO.",
          %w[ssl_would_block_errors.rb openssl_errors.rb])
    patch(:ssl_turn, "all",
          "Ruby asks the scheduler only when OpenSSL has to wait, so a task that always finds data keeps the others " \
          "from running.",
          %w[ssl_turn.rb openssl_errors.rb fibers/turn.c])
    patch(:ssl_handshake, "all",
          "When a cancel ends a TLS handshake, many clients leave the socket open until the next garbage collection.",
          %w[ssl_handshake.rb openssl_errors.rb])
    patch(:callers_fiber, "all",
          "The first fiber of a thread is a blocking fiber: when it waits, Ruby asks no scheduler.",
          %w[ruby/fiber_insides.c], found: FiberInsides.can_unblock?)
    patch(:match_apart, "all",
          "Tasks whose blocks stand in the same method share $~ and $_.",
          %w[ruby/fiber_insides.c], found: FiberInsides.can_match_apart?)
    patch(:warm_stacks, "all",
          "Ruby gives the memory of each ended fiber's stack back to the kernel. Each new fiber then causes page " \
          "faults, and starting a task takes several times as long.",
          %w[ruby/stack_pool.c fibers/warm_stacks.c core_ext/ractor_new.c], { "Ractor." => "RactorNew" },
          found: StackPool.found?, kept_visibility: :public)
    complete
  end
  private_constant :Patches, :FiberInsides, :StackPool

  # @return [Array<Heddle::Patch>] every change to Ruby's own classes, with its state: guides/patches.md
  def self.patches = Patches.all
end
