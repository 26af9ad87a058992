# frozen_string_literal: true

require "json"
require_relative "worker"

module Heddle
  class Server
    # Ties the workers to their supervisor, also when another program takes its place: by a pipe that ends with the
    # supervisor, and by the list of the workers, which that program takes over.
    #
    # @private
    class Crew
      HANDED_OVER = "HEDDLE_SERVE_WORKERS"
      private_constant :HANDED_OVER

      # @return [IO] the end of the pipe for a worker: it ends when the supervisor ends
      attr_reader :lifeline
      # @return [Array<Worker>] the workers of the program whose place this one has taken
      attr_reader :taken_over

      def initialize
        state = JSON.parse(ENV.delete(HANDED_OVER) || "null")
        @lifeline, @held = state ? state["lifeline"].zip(%w[r w]).map { |fd, mode| IO.for_fd(fd, mode) } : IO.pipe
        @taken_over = state ? state["workers"].map { |parts| Worker.adopted(*parts) } : []
        [@lifeline, @held, *@taken_over.map(&:to_io)].each { |io| io.close_on_exec = true }
      end

      # @param workers [Array<Worker>]
      # @return [Array(Hash{String => String}, Hash{Integer => IO})] environment and descriptors for the next program
      def handed_over(workers)
        ios = [@lifeline, @held, *workers.map(&:to_io)]
        state = { workers: workers.map(&:handed_over), lifeline: [@lifeline.fileno, @held.fileno] }
        [{ HANDED_OVER => JSON.generate(state) }, ios.to_h { |io| [io.fileno, io] }]
      end

      # Closes the supervisor's end of the pipe in a worker. The worker's own lifeline would not end otherwise.
      def close = @held.close
    end
  end
end
