# frozen_string_literal: true

require_relative "file_wait"

module Heddle
  module CoreExt
    # Ruby 3.3 looks files up and lists folders without asking a scheduler. What the kernel knows by heart is asked on
    # the spot; what may have to come from a disk is asked by a thread of the pool, as Ruby 3.4+ has it done.
    module FileLookup
      # Runs the block, which looks +path+ up, where it holds up nobody.
      def self.run(path, &block)
        scheduler = Fiber.current_scheduler
        return yield unless scheduler.is_a?(Scheduler) && (path.is_a?(String) || path.respond_to?(:to_path))

        scheduler.__send__(:known?, path) ? yield : FileWait.run(&block)
      end

      # For File's methods that only look.
      module Stat
        %i[stat lstat exist? file? directory? size size? zero? ftype mtime atime ctime readable? writable?
           executable? symlink?].each do |name|
          define_method(name) { |path| FileLookup.run(path) { super(path) } }
        end
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
      end
    end
  end
end

File.singleton_class.prepend(Heddle::CoreExt::FileLookup::Stat)
Dir.singleton_class.prepend(Heddle::CoreExt::FileLookup::List)
