# frozen_string_literal: true

require_relative "file_wait"

module Heddle
  module CoreExt
    # Ruby 3.3 looks files up and lists folders without asking a scheduler; Ruby 3.4+ hands each of the system calls to
    # a worker, one for every entry of a folder. What the kernel knows by heart is asked on the spot; what may have to
    # come from a disk is asked by a thread of the pool, and a folder is listed there as a whole.
    module FileLookup
      # Runs the block, which looks +path+ up, where it holds up nobody.
      def self.run(path, &block)
        scheduler = Fiber.current_scheduler
        return yield unless scheduler.is_a?(Scheduler) && (path.is_a?(String) || path.respond_to?(:to_path))

        known = scheduler.__send__(:known?, path)
        return known ? scheduler.__send__(:quickly, &block) : yield if OFFLOADED

        known ? yield : FileWait.run(&block)
      end

      OFFLOADED = RUBY_VERSION >= "3.4"
      private_constant :OFFLOADED

      # For File's methods that only look.
      module Stat
        %i[stat lstat exist? file? directory? size size? zero? ftype mtime atime ctime readable? writable?
           executable? symlink?].each do |name|
          define_method(name) { |path| FileLookup.run(path) { super(path) } }
        end
      end

      # For Dir's method that only looks.
      module Exist
        # @private
        def exist?(path) = FileLookup.run(path) { super(path) }
      end

      # For Dir's methods that read a whole folder.
      module List
        # @private
        def children(*, **) = FileWait.run { super }
        # @private
        def entries(*, **) = FileWait.run { super }
        # @private
        def empty?(*) = FileWait.run { super }

        # @private
        def each_child(*arguments, **options, &block)
          block ? children(*arguments, **options).each(&block) && nil : super
        end

        # @private
        def foreach(*arguments, **options, &block)
          block ? entries(*arguments, **options).each(&block) && nil : super
        end

        # @private
        def glob(*arguments, **options, &block)
          found = FileWait.run { super(*arguments, **options, &nil) }
          block ? found.each(&block) && nil : found
        end

        # @private
        def [](*, **) = FileWait.run { super }
      end

      # For the same of an open Dir.
      module Open
        # @private
        def children = FileWait.run { super }

        %i[each each_child].each do |name|
          define_method(name) do |&block|
            next super(&block) unless block && Fiber.current_scheduler.is_a?(Scheduler)

            FileLookup.each_entry(self, block) { |list| super() { |entry| list << [entry, tell] } }
          end
        end
      end

      # Calls +block+ with the entries that a thread of the pool lists. A block that breaks off leaves the Dir where it
      # would be if it had been read till there.
      def self.each_entry(dir, block)
        entries = FileWait.run { [].tap { |list| yield(list) } }
        position = nil
        entries.each do |name, place|
          position = place
          block.call(name)
        end
        position = nil
        dir
      ensure
        dir.seek(position) if position
      end
    end
  end
end

File.singleton_class.prepend(Heddle::CoreExt::FileLookup::Stat)
Dir.singleton_class.prepend(Heddle::CoreExt::FileLookup::Exist, Heddle::CoreExt::FileLookup::List)
Dir.prepend(Heddle::CoreExt::FileLookup::Open)
