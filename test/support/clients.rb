# frozen_string_literal: true

require "support/servers/late_proxy"

module TestSupport
  # What the tests of clients (test/clients/) have in common. In the body of a contract:
  #
  #   extend TestSupport::Clients
  #   client "dalli", server: TestSupport::Servers::Memcached
  module Clients
    class << self
      # @param own [Boolean] the version that comes with this Ruby, also where a newer one is installed
      # @return [String, nil] why the client cannot be had here
      def load(name, file = name, own: false)
        found = Gem::Specification.find_all_by_name(name)
        own &&= found.find(&:default_gem?)
        own ? gem(name, own.version.to_s) : (activate(name) if found.any?)
        quietly { require file }
        nil
      rescue LoadError => e
        "the gem #{name} cannot be loaded on this Ruby (bin/test tries to install it): #{e.message}"
      end

      private

      # Its own code is not ours to mend.
      def quietly
        verbose = $VERBOSE
        $VERBOSE = nil
        yield
      ensure
        $VERBOSE = verbose
      end

      # With what it needs: a require in C (trilogy's of bigdecimal) does not look for a gem.
      def activate(name)
        gem(name)
        Gem.loaded_specs[name].runtime_dependencies.each { |needed| gem(needed.name, *needed.requirement.as_list) }
      end
    end

    # Loads the client, and starts the server before each test (once a process), or skips the tests.
    # @param late [Boolean] whether a LateProxy stands before the server, at #late_port
    def client(name, file: name, server: nil, late: false, own: false)
      missing = Clients.load(name, file, own: own) || server&.missing
      include Assertions
      include version_of(name) # the last one, if there are several
      include setup_with(server, missing, late)
    end

    private

    def version_of(name)
      Module.new { define_method(:client_version) { (Gem.loaded_specs[name]&.version || RUBY_VERSION).to_s } }
    end

    def setup_with(server, missing, late)
      Module.new do
        define_method(:before_setup) do
          # Before the look at what is there, so that the server is not taken for a leak.
          @server = server.start unless missing || server.nil? || backend_missing
          @late_server = Servers::LateProxy.before(@server) if @server && late
          super()
        end

        define_method(:setup) do
          super()
          skip(missing) if missing
        end
      end
    end

    # For the tests themselves.
    module Assertions
      attr_reader :server

      # That of the LateProxy.
      def late_port = @late_server.port

      # By name. Plain Ruby 3.4 and 4.0 then lose a descriptor now and again, which the reference run must not show.
      def host = reference? ? "127.0.0.1" : "localhost"

      # Runs the block in this number of tasks, each with its number.
      # @return [Array] the values of the blocks, and how many of them were under way at the same time
      def all_at_once(count)
        running = most = 0
        jobs = Array.new(count) do |number|
          go do
            most = [most, running += 1].max
            yield(number)
          ensure
            running -= 1
          end
        end
        [jobs.map(&:value), most]
      end

      # The block asks this number of questions at the same time: all of them are there before one is answered. Others
      # run while the server does nothing; it stands still again some times while it answers.
      # @return what the block returns
      def assert_overlaps(count, server = @server, pauses: 3)
        assert_others_run do
          asking = server.paused do
            go { yield }.tap do |job|
              wait_until("#{count} questions at once", timeout: 25) { job.finished? || server.unread >= count }
              job.value if job.finished? # it has failed

              others_have_run
            end
          end
          pauses.times { sleep(0.05) && server.paused { others_have_run } }
          asking.value
        end
      end

      # The block raises such an exception about this number of seconds after its start. Returns it.
      def assert_times_out(seconds, *classes)
        error = took = nil
        assert_others_run { took = elapsed { error = assert_raises(*classes) { yield } } }

        assert_operator(took, :>=, seconds * 0.9)
        assert_operator(took, :<, seconds + 20)
        error
      end

      # The block does not end by itself, but at once when its task is cancelled. It is called after +prepare+.
      def assert_cancels(prepare = -> {})
        heddle_only("they are not cancelled")
        Heddle.run(backend: backend) do
          prepare.call
          task = Heddle.spawn { yield }

          assert_nil(task.wait(0.1), "it has ended: #{task.error.inspect}")
          task.cancel.wait(20)

          assert_predicate(task, :cancelled?)
        end
      end

      # Closes the sockets of this class that a client has forgotten, which a GC would do some time.
      def close_forgotten(socket_class)
        GC.start # closes clients that are garbage already
        ObjectSpace.each_object(socket_class).select { |one| one.instance_of?(socket_class) }.each(&:close)
      end

      # A port of 127.0.0.1 that leaves attempts to connect without an answer: its queue is full.
      def silent_port
        silent_server.local_address.ip_port
      end

      # A port of 127.0.0.1 that takes connections and never says anything.
      def mute_port = keep(TCPServer.new("127.0.0.1", 0)).local_address.ip_port
    end
  end
end
