# frozen_string_literal: true

module Heddle
  module CoreExt
    # Lists folders on a thread of the pool. Ruby 3.3 lists them without asking a scheduler; Ruby 3.4+ hands each of the
    # system calls to a worker, one for every entry. Methods that call a block list some entries at a time, about as
    # many as Ruby gets from the system in one go.
    module Folder
      # For Dir's methods that list a folder as a whole.
      module List
        def children(...) = Scheduler.current ? Folder.list(:__heddle_children, ...) : __heddle_children(...)

        def entries(...) = Scheduler.current ? Folder.list(:__heddle_entries, ...) : __heddle_entries(...)

        def empty?(path) = Scheduler.current ? Folder.list(:__heddle_empty?, path) : __heddle_empty?(path)

        def glob(...) = Scheduler.current ? Folder.glob(...) : __heddle_glob(...)

        def [](...) = Scheduler.current ? Folder.of_patterns(...) : __send__(:"__heddle_[]", ...)
      end

      # For Dir's methods that call a block with each entry.
      module Each
        def each_child(...)
          block_given? && Scheduler.current ? Folder.open_and_each(true, ...) : __heddle_each_child(...)
        end

        def foreach(...)
          block_given? && Scheduler.current ? Folder.open_and_each(false, ...) : __heddle_foreach(...)
        end
      end

      # For an open Dir.
      module Open
        def children = Scheduler.current ? PoolThread.run { __heddle_children } : __heddle_children

        def each(&) = block_given? && Scheduler.current ? Folder.each_of(self, false, &) : __heddle_each(&)

        def each_child(&) = block_given? && Scheduler.current ? Folder.each_of(self, true, &) : __heddle_each_child(&)
      end

      BATCH = 512
      SELF_AND_PARENT = [".", ".."].freeze
      # Classes of arguments that Ruby uses without calling a method of the program.
      PLAIN = [String, Integer, Encoding, Dir, NilClass, TrueClass, FalseClass].freeze
      private_constant :BATCH, :SELF_AND_PARENT, :PLAIN

      class << self
        # For the methods that take a path.
        # @param name [Symbol] the name of Ruby's own method
        def list(name, *arguments, **options) = call(name, with_path(arguments), options)

        def glob(*arguments, **options, &block)
          patterns, *flags = arguments
          arguments = [converted(patterns), *flags] if arguments.any? && flags.size < 2
          found = call(:__heddle_glob, arguments, with_base(options))
          block ? found.each(&block) && nil : found
        end

        def of_patterns(*patterns, **options) = call(:"__heddle_[]", converted(patterns), with_base(options))

        # For the methods that open a folder, call the block with the entries, and close it.
        def open_and_each(children_only, *arguments, **options, &)
          close = ->((dir, _)) { dir.__send__(:__heddle_close) }
          dir, entries = run(with_path(arguments), options, discard: close) do |*list|
            open = Dir.__send__(:__heddle_open, *list, **options)
            [open, batch(open, children_only)]
          end
          yield_all(dir, entries, children_only, &)
          nil
        ensure
          dir&.__send__(:__heddle_close)
        end

        # Yields the entries of an open Dir from its beginning. If the block breaks off, the Dir is left at the entry
        # that was yielded last.
        def each_of(dir, children_only, &)
          entries = PoolThread.run do
            dir.__send__(:__heddle_rewind)
            batch(dir, children_only)
          end
          yield_all(dir, entries, children_only, &)
          dir
        end

        private

        def call(name, arguments, options)
          run(arguments, options) { |*list| Dir.__send__(name, *list, **options) }
        end

        # Runs the block with the arguments: on a thread of the pool, unless Ruby has to convert one of them first.
        def run(arguments, options, **job)
          return yield(*arguments) unless [*arguments, *options.values].flatten.all? { |one| plain?(one) }

          PoolThread.run(**job) { yield(*arguments) }
        end

        # Converts the argument, which is a path. If the number of arguments is wrong, Ruby says so before it converts
        # one.
        def with_path(arguments) = arguments.size == 1 ? [path(arguments.first)] : arguments

        # Converts the options, of which one may be a path.
        def with_base(options)
          base = options[:base]
          base.nil? || base.is_a?(Dir) ? options : options.merge(base: path(base))
        end

        # Converts a pattern, or an array of patterns.
        def converted(patterns)
          list = Array.try_convert(patterns)
          list ? list.map { |one| path(one) } : path(patterns)
        end

        # Converts a path as Ruby would. A String is copied, because its owner may change it while the thread uses it.
        def path(object) = object.is_a?(String) ? object.dup : File.path(object)

        def plain?(object) = PLAIN.any? { |type| object.is_a?(type) }

        # Returns the next entries, and the places after them; fewer entries than BATCH are the last ones.
        def batch(dir, children_only)
          entries = []
          while entries.size < BATCH && (name = dir.__send__(:__heddle_read))
            entries << [name, dir.__send__(:__heddle_tell)] unless children_only && SELF_AND_PARENT.include?(name)
          end
          entries
        end

        def yield_all(dir, entries, children_only)
          position = nil
          until entries.empty?
            entries.each do |name, place|
              position = place
              yield(name)
            end
            position = nil
            break if entries.size < BATCH

            entries = PoolThread.run { batch(dir, children_only) }
          end
        ensure
          return_to(dir, position) if position
        end

        def return_to(dir, position)
          dir.__send__(:__heddle_seek, position)
        rescue IOError
          nil # the block has closed it
        end
      end
    end
  end
end
