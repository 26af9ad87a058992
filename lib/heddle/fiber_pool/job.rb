# frozen_string_literal: true

module Heddle
  class FiberPool
    # A task that may have to wait in the line of a pool before it starts.
    class Job < LateTask
      def initialize(scope, name, pool)
        super(scope, name, false, false)
        @pool = pool
      end

      # @return [Symbol] as of any task; :waiting while it is in line
      def status = @in_line && !@finished ? :waiting : super

      def ended
        super
        @pool.job_ended(self) unless @in_line
      end

      private

      def put_in_line = @pool.put_in_line(self)

      def take_out_of_line = @pool.take_out_of_line(self)
    end
    private_constant :Job
  end
end
