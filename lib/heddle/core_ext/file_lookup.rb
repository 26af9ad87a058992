# frozen_string_literal: true

module Heddle
  using Internal

  module CoreExt
    # Looks files up without a stop of the thread. Ruby 3.3 looks them up without asking a scheduler; Ruby 3.4+ hands
    # each of the system calls to a worker. A question that the kernel can answer from memory is asked inline; a thread
    # of the pool asks a question that may need a disk.
    module FileLookup
      # Runs the block, which looks +path+ up, where it stops no other fiber.
      #
      # @yield [Object] the path: a String, or an object that Ruby takes for an open file
      def self.run(path, &block)
        scheduler = Scheduler.current
        return yield(path) unless scheduler && path?(path)

        path = path.is_a?(String) ? path.dup : File.path(path)
        known = scheduler.cached?(path)
        return known ? scheduler.inline { yield(path) } : yield(path) if RubyFeatures::OPEN_IS_OFFLOADED

        known ? yield(path) : PoolThread.run { block.call(path) }
      end

      # A Tempfile has a path and is an open file: Ruby asks the open file.
      def self.path?(object)
        object.is_a?(String) || (object.respond_to?(:to_path) && !object.respond_to?(:to_io))
      end
      private_class_method :path?

      # For methods of File that only look.
      module Stat
        %i[stat lstat exist? file? directory? size size? zero? ftype mtime atime ctime readable? writable?
           executable? symlink?].each do |name|
          class_eval(<<~RUBY, __FILE__, __LINE__ + 1)
            def #{name}(path)                                          # def exist?(path)
              return __heddle_#{name}(path) unless Scheduler.current   #   return __heddle_exist?(path) unless ...
                                                                       #
              FileLookup.run(path) { |found| __heddle_#{name}(found) } #   FileLookup.run(path) { |found| ... }
            end                                                        # end
          RUBY
        end
      end

      # For a method of Dir that only looks.
      module Exist
        def exist?(path)
          return __heddle_exist?(path) unless Scheduler.current

          FileLookup.run(path) { |found| __heddle_exist?(found) }
        end
      end
    end
  end
end
