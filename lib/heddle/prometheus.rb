# frozen_string_literal: true

module Heddle
  # Writes the figures of Heddle.stats, and others, in the text format of Prometheus, version 0.0.4
  # (https://prometheus.io/docs/instrumenting/exposition_formats/). {Heddle::Rack::Metrics} serves the figures of
  # Heddle.stats alone. `require "heddle/prometheus"` loads it.
  #
  # @example
  #   families = Heddle::Prometheus.families(Heddle.stats)
  #   families << Heddle::Prometheus.one("jobs_waiting", "gauge", "Jobs that wait.", jobs.size)
  #   Heddle::Prometheus.text(families)
  module Prometheus
    # The content type of an answer with such a text.
    CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

    # A metric.
    #
    # @!attribute [r] name
    #   @return [String] in small letters, with underscores
    # @!attribute [r] type
    #   @return [String] "gauge", "counter" or "histogram"
    # @!attribute [r] help
    #   @return [String] a sentence
    # @!attribute [r] samples
    #   @return [Array<Array(String, Hash, Numeric)>] the suffix of the name, the labels and the value of each line. No
    #     label may have a quote, a backslash or a line end in its value
    Family = Data.define(:name, :type, :help, :samples)

    class << self
      # Makes the metrics of Heddle.stats.
      #
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

      # Makes a metric of one value.
      #
      # @param name [String]
      # @param type [String] "gauge" or "counter"
      # @param help [String]
      # @param value [Numeric]
      # @return [Family]
      def one(name, type, help, value) = Family.new(name, type, help, [["", {}, value]])

      # Makes a metric of several values, which differ in a label.
      #
      # @param name [String]
      # @param type [String] "gauge" or "counter"
      # @param help [String]
      # @param label [Symbol]
      # @param values [Hash{Object => Numeric}] by the value of the label
      # @return [Family]
      def by_label(name, type, help, label, values)
        Family.new(name, type, help, values.map { |own, value| ["", { label => own }, value] })
      end

      # Writes metrics.
      #
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

      # Joins metrics of the same name into one, for a program with several processes.
      #
      # @param sources [Hash{Hash => Array<Family>}] by the labels that distinguish the sources
      # @return [Array<Family>]
      def merge(sources)
        sources.flat_map { |labels, families| families.map { |one| labelled(one, labels) } }
          .group_by(&:name).each_value.map do |same|
            same.first.with(samples: same.flat_map(&:samples))
          end
      end

      private

      def labelled(family, labels)
        family.with(samples: family.samples.map { |suffix, own, value| [suffix, { **labels, **own }, value] })
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
end
