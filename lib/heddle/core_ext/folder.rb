# frozen_string_literal: true

require_relative "../pool_thread"

module Heddle
  module CoreExt
    # Folders are listed by a thread of the pool. (Ruby 3.3 lists them without asking a scheduler; Ruby 3.4+ hands each
    # of the system calls to a worker, one for every entry.) For what calls a block some entries are listed at a time,
    # about as many as Ruby gets from the system in one go.
    module Folder
      # For Dir's methods that list a folder as a whole.
      module List
        # @private
        def children(*arguments, **options)
          unless Scheduler.current
            return options.empty? ? __heddle_children(*arguments) : __heddle_children(*arguments, **options)
          end

          Folder.run(Folder.with_path(arguments), options) { |*list| __heddle_children(*list, **options) }
        end

        # @private
        def entries(*arguments, **options)
          unless Scheduler.current
            return options.empty? ? __heddle_entries(*arguments) : __heddle_entries(*arguments, **options)
          end

          Folder.run(Folder.with_path(arguments), options) { |*list| __heddle_entries(*list, **options) }
        end

        # @private
        def empty?(path)
          return __heddle_empty?(path) unless Scheduler.current

          Folder.run(Folder.with_path([path])) { |name| __heddle_empty?(name) }
        end

        # @private
        def glob(*arguments, **options, &block)
          return __heddle_glob(*arguments, **options, &block) unless Scheduler.current

          options = Folder.with_base(options)
          patterns, *flags = arguments
          arguments = [Folder.patterns(patterns), *flags] if arguments.any?
          found = Folder.run(arguments, options) { |*list| __heddle_glob(*list, **options) }
          block ? found.each(&block) && nil : found
        end

        # @private
        def [](*patterns, **options)
          return __send__(:"__heddle_[]", *patterns, **options) unless Scheduler.current

          options = Folder.with_base(options)
          Folder.run(Folder.patterns(patterns), options) { |*list| __send__(:"__heddle_[]", *list, **options) }
        end
      end

      # For Dir's methods that call a block with each entry.
      module Each
        # @private
        def each_child(*arguments, **options, &block)
          if block && Scheduler.current
            Folder.open_and_each(arguments, options, children_only: true, &block)
          else
            __heddle_each_child(*arguments, **options, &block)
          end
        end

        # @private
        def foreach(*arguments, **options, &block)
          if block && Scheduler.current
            Folder.open_and_each(arguments, options, children_only: false, &block)
          else
            __heddle_foreach(*arguments, **options, &block)
          end
        end
      end

      # For an open Dir.
      module Open
        # @private
        def children
          return __heddle_children unless Scheduler.current

          PoolThread.run { __heddle_children }
        end

        # @private
        def each(&block)
          return __heddle_each(&block) unless block && Scheduler.current

          Folder.each_of(self, children_only: false, &block)
        end

        # @private
        def each_child(&block)
          return __heddle_each_child(&block) unless block && Scheduler.current

          Folder.each_of(self, children_only: true, &block)
        end
      end

      BATCH = 512
      SELF_AND_PARENT = [".", ".."].freeze
      # What Ruby uses without calling a method of the program's.
      PLAIN = [String, Integer, Encoding, Dir, NilClass, TrueClass, FalseClass].freeze
      private_constant :BATCH, :SELF_AND_PARENT, :PLAIN

      class << self
        # Runs the block with the arguments: on a thread of the pool, unless Ruby has to convert one of them first.
        def run(arguments, options = {}, **job)
          return yield(*arguments) unless [*arguments, *options.values].flatten.all? { |one| plain?(one) }

          PoolThread.run(**job) { yield(*arguments) }
        end

        # The arguments, of which the first is a path.
        def with_path(arguments)
          arguments.empty? ? arguments : [path(arguments.first), *arguments.drop(1)]
        end

        # The options, of which one may be a path.
        def with_base(options)
          base = options[:base]
          base.nil? || base.is_a?(Dir) ? options : options.merge(base: path(base))
        end

        # A pattern, or an array of them.
        def patterns(given)
          list = Array.try_convert(given)
          list ? list.map { |one| path(one) } : path(given)
        end

        # For the methods that open a folder, call the block with the entries, and close it.
        def open_and_each(arguments, options, children_only:, &)
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

        # Yields the entries of an open Dir from its beginning on. A block that breaks off leaves it where it would be
        # if it had been read till there.
        def each_of(dir, children_only:, &)
          entries = PoolThread.run do
            dir.__send__(:__heddle_rewind)
            batch(dir, children_only)
          end
          yield_all(dir, entries, children_only, &)
          dir
        end

        private

        # As Ruby would convert it. (The owner of a String may change it while the thread uses it.)
        def path(object) = object.is_a?(String) ? object.dup : File.path(object)

        def plain?(object) = PLAIN.any? { |type| object.is_a?(type) }

        # The next entries, and the places after them; fewer than BATCH are the last ones.
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
