# frozen_string_literal: true

module TestSupport
  # A schema of graphql-ruby whose fields come from sources of the Dataloader.
  class GraphqlSchema < GraphQL::Schema
    @begun = []

    class << self
      # @return [Array] the name and the keys of each source that has begun, and its end if it was cancelled
      attr_reader :begun
    end

    # Gives each key a text.
    class Source < GraphQL::Dataloader::Source
      PARTNERS = { "left" => "right", "right" => "left" }.freeze

      def initialize(name)
        super()
        @name = name
      end

      def fetch(keys)
        GraphqlSchema.begun << [@name, keys]
        raise GraphQL::ExecutionError, "no such thing" if @name == "failing"

        wait
        keys = dataloader.with(Source, "one").load_all(keys).map { |text| "of #{text}" } if @name == "nested"
        keys.map { |key| "#{@name} #{key}" }
      end

      private

      def wait
        sleep(0.001)
        sleep if @name == "slow"
        partner = PARTNERS[@name]
        sleep(0.001) until partner.nil? || GraphqlSchema.begun.any? { |name, _| name == partner }
      ensure
        GraphqlSchema.begun << [@name, :ended] if @name == "slow"
      end
    end

    # The fields.
    class Query < GraphQL::Schema::Object
      field :failing, String
      field :left, String
      field :right, String
      field :slow, String
      { left: 1, right: 2, failing: 3, slow: 4 }.each do |name, key|
        define_method(name) { dataloader.with(Source, name.to_s).load(key) }
      end
      %i[one nested].each do |name|
        field(name, String) { argument :key, Integer }
        define_method(name) { |key:| dataloader.with(Source, name.to_s).load(key) }
      end
    end

    query Query
    use GraphQL::Dataloader

    # Its Dataloader asks for a scheduler.
    class Nonblocking < GraphQL::Schema
      query Query
      verbose = $VERBOSE
      $VERBOSE = nil # it is deprecated
      use GraphQL::Dataloader, nonblocking: true
      $VERBOSE = verbose
    end
  end
end
