# frozen_string_literal: true

module Heddle
  # Writes the figures of Heddle.stats in the text format of Prometheus, version 0.0.4
  # (https://prometheus.io/docs/instrumenting/exposition_formats/).
  #
  # @private
  module Prometheus
    CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

    # A metric. +samples+: [suffix of the name, labels, value] of each line.
    Family = Struct.new(:name, :type, :help, :samples)

    class << self
      # @param stats [Heddle::Stats]
      # @return [Array<Family>]
      def families(stats)
        [by_label("heddle_tasks", "gauge", "Tasks and fibers by state.", :state, stats.tasks),
         one("heddle_tasks_started_total", "counter", "Tasks and fibers that were started.", stats.started),
         latency("heddle_loop_latency_seconds", stats.loop_latency),
         one("heddle_polls_total", "counter", "Looks of the loops at the kernel.", stats.polls),
         one("heddle_timers", "gauge", "Deadlines of sleeps and timeouts that are set.", stats.timers),
         one("heddle_closes_total", "counter", "IOs that tasks have closed.", stats.closes),
         one("heddle_cancels_total", "counter", "Cancels that were sent to tasks.", stats.cancels),
         one("heddle_schedulers", "gauge", "Threads that run Heddle now.", stats.schedulers.size),
         *threads("workers", "for names and files", stats.workers),
         *threads("pool", "for Heddle.offload and calls that block", stats.pool)]
      end

      # @param name [String]
      # @param type [String] "gauge" or "counter"
      # @param help [String]
      # @param value [Numeric]
      # @return [Family]
      def one(name, type, help, value) = Family.new(name, type, help, [["", {}, value]])

      # @param label [Symbol]
      # @param values [Hash{Object => Numeric}] by the value of the label
      # @return [Family]
      def by_label(name, type, help, label, values)
        Family.new(name, type, help, values.map { |own, value| ["", { label => own }, value] })
      end

      # @param families [Array<Family>]
      # @return [String]
      def text(families)
        families.map do |family|
          lines = family.samples.map do |suffix, labels, value|
            "#{family.name}#{suffix}#{inside_braces(labels)} #{number(value)}\n"
          end
          "# HELP #{family.name} #{family.help}\n# TYPE #{family.name} #{family.type}\n#{lines.join}"
        end.join
      end

      # Joins families of the same name into one.
      #
      # @param sources [Hash{Hash => Array<Family>}] by the labels that distinguish the sources
      # @return [Array<Family>]
      def merge(sources)
        sources.flat_map { |labels, families| families.map { |one| labelled(one, labels) } }
          .group_by(&:name).each_value.map do |same|
            same.first.dup.tap { |family| family.samples = same.flat_map(&:samples) }
          end
      end

      private

      def labelled(family, labels)
        samples = family.samples.map { |suffix, own, value| [suffix, { **labels, **own }, value] }
        family.dup.tap { |copy| copy.samples = samples }
      end

      def latency(name, latency)
        buckets = latency.buckets.map { |bound, count| ["_bucket", { le: number(bound) }, count] }
        Family.new(name, "histogram", "How long what has happened has waited until its task ran.",
                   [*buckets, ["_sum", {}, latency.sum], ["_count", {}, latency.count]])
      end

      def threads(name, what, counts)
        [one("heddle_#{name}_threads", "gauge", "Threads #{what}.", counts[:threads]),
         one("heddle_#{name}_queued", "gauge", "Jobs that wait for a thread #{what}.", counts[:queued])]
      end

      def inside_braces(labels)
        return "" if labels.empty?

        "{#{labels.map { |name, value| "#{name}=\"#{value}\"" }.join(",")}}" # no value has anything to escape
      end

      def number(value)
        return value.to_s unless value.is_a?(Float)

        value.infinite? ? "+Inf" : value.to_s
      end
    end
  end
  private_constant :Prometheus
end
