# frozen_string_literal: true

require_relative "../support"

module Tools
  # How much of the machine is idle: what Linux has counted since the last look (proc(5), /proc/stat).
  class IdleCores
    STAT = "/proc/stat"

    # @param cores [Integer] how many of the machine's cores may be kept busy
    # @param all [Integer] how many it has
    def initialize(cores, all: Tools.processors, path: STAT)
      @kept = all - cores
      @all = all
      @path = path
      @before = ticks
    end

    # @return [Float, nil] how many cores were idle since the last call; nil where that is not counted
    def look
      before = @before
      @before = ticks
      return unless before && @before

      idle, all = @before.zip(before).map { |after, earlier| after - earlier }
      ((idle.to_f / all) * @all) - @kept if all.positive?
    end

    private

    # @return [Array(Integer, Integer), nil] those of idle cores (also while they wait for a disk), and all
    def ticks
      user, nice, system, idle, disk, *others = File.read(@path)[/\Acpu +(.*)/, 1].split.first(8).map { |n| Integer(n) }
      [idle + disk, [user, nice, system, idle, disk, *others].sum]
    rescue SystemCallError, NoMethodError
      nil
    end
  end
end
