# frozen_string_literal: true

module Heddle
  # Stages that work at the same time, each on several items: see Heddle.pipeline. A pipeline does nothing until #each
  # or #to_a is called. Each call reads the source anew.
  #
  # A stage takes an item only when it has a place for it, and frees the place when the next stage has taken the result.
  # So a stage never has more than its limit of items, and a slow stage makes those before it wait.
  #
  # Results keep the order of the items. The first error of a block or of the source cancels all stages. If the block of
  # #each is left by break, the items that are in the stages are dropped.
  class Pipeline
    # A stage as it was given: a limit, and a Proc that makes an Array of results of an item.
    Step = Struct.new(:limit, :work)
    private_constant :Step

    # A stage at work.
    class Stage
      # @param number [Integer] for reports
      # @param step [Step]
      def initialize(number, step)
        @name = "stage #{number} of a pipeline"
        @work = step.work
        @tasks = Completion.new("a result of", @name) # of the items that it has, in their order
        @places = Completion.new("a place in", @name)
        step.limit.times { @places << true }
      end

      # @param scope [Scope]
      # @param items [#each, Thread::Queue]
      # @return [self]
      def start(scope, items)
        scope.spawn(name: @name) do
          @places.pop
          FanOut.each_of(items) do |item|
            @tasks << scope.spawn { @work.call(item) }
            @places.pop
          end
          @tasks.close
        end
        self
      end

      # Yields each result. Before the last result of an item the place is free.
      def each
        while (task = @tasks.pop)
          *others, last = results = task.value
          others.each { |result| yield result }
          @places << true
          yield last unless results.empty?
        end
      end
    end
    private_constant :Stage

    # @private
    def initialize(source, steps = Check.no_new(Pipeline, "Heddle.pipeline"))
      @source = source
      @steps = steps
    end

    # Adds a stage: the block makes one result of each item.
    #
    # @param limit [Integer] how many items it works at, or has results of that the next stage has not taken
    # @yieldparam item [Object]
    # @return [Heddle::Pipeline]
    # @raise [ArgumentError] without a block, or if the limit is not positive
    def map(limit: 1, &block)
      stage("map", limit, block) { |item| [block.call(item)] }
    end

    # Adds a stage: the block makes an Array of any number of results of each item.
    #
    # @param limit [Integer] see #map
    # @yieldparam item [Object]
    # @yieldreturn [Array]
    # @return [Heddle::Pipeline]
    # @raise [ArgumentError] without a block, or if the limit is not positive
    def flat_map(limit: 1, &block)
      stage("flat_map", limit, block) { |item| Array(block.call(item)) }
    end

    # Adds a stage: only items for which the block returns neither nil nor false go on.
    #
    # @param limit [Integer] see #map
    # @yieldparam item [Object]
    # @return [Heddle::Pipeline]
    # @raise [ArgumentError] without a block, or if the limit is not positive
    def select(limit: 1, &block)
      stage("select", limit, block) { |item| block.call(item) ? [item] : [] }
    end

    # Runs the pipeline, and calls the block for each result. Without a limit the block runs here, for one result after
    # the other, and break may leave it. With a limit it runs in tasks, as the block of Heddle.each. Starts a run if
    # none exists.
    #
    # @param limit [Integer, nil] for how many results the block runs at the same time; nil: for one, here
    # @yieldparam result [Object]
    # @return [self, Enumerator] an Enumerator without a block
    # @raise [ArgumentError] if the limit is not positive
    # @raise [Exception] the first error of a block or of the source
    def each(limit: nil, &block)
      Check.positive_integer("limit", limit, ", or nil for one, here") unless limit.nil?
      return enum_for(:each, limit:) unless block

      limit ? FanOut.new(self, limit).run(block) { |result| yield result } : run(&block)
      self
    end

    # Runs the pipeline.
    #
    # @return [Array<Object>] the results, in the order of the items
    # @raise [Exception] the first error of a block or of the source
    def to_a
      results = []
      each { |result| results << result }
      results
    end

    # @return [String]
    def inspect = "#<#{self.class} of #{@steps.size} stages>"

    private

    def stage(name, limit, block, &work)
      Check.refuse("Heddle::Pipeline##{name} needs a block") unless block
      Check.positive_integer("limit", limit)

      own = lambda do |item|
        Task.match_apart(block)
        work.call(item)
      end
      Pipeline.new(@source, [*@steps, Step.new(limit, own)])
    end

    def run(&)
      Heddle.scope do |scope|
        results = @steps.each.with_index(1).reduce(@source) do |items, (step, number)|
          Stage.new(number, step).start(scope, items)
        end
        FanOut.each_of(results, &)
      end
    end
  end
end
