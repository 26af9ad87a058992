# frozen_string_literal: true

require_relative "child"
require_relative "dear_calls"
require_relative "needs"
require_relative "peer_gems"

module Bench
  # Runs every row on every peer in processes of their own. Peers that are compared run by turns: A B C A B C.
  class Runner
    # Operations by which it is found out how many there is time for.
    FEW = 10

    # All rounds of a row on a peer, each a list of turns, and what went wrong, if anything: "hangs", "crashes",
    # "wrong result".
    Cell = Struct.new(:row, :peer, :rounds, :failure, :detail, :operations) do
      def turns = rounds.flatten

      def fail(failure, detail)
        self.failure = failure
        self.detail = detail
      end
    end

    attr_reader :cells, :missing, :facts

    # peers, rounds, turns:: nil for what each group says
    # keep:: whether a peer does all rows of a group in one process, also where the group does not say so
    # seconds:: no round begins that would, after the last one, not end within this number of seconds; nil: all rounds
    def initialize(rows:, peers: nil, rounds: nil, turns: nil, scale: 1.0, timeout: 60.0, seconds: nil, install: true,
                   yjit: Child::YJIT, keep: false, dear_calls: nil)
      @scale = scale
      @rounds = rounds
      @turns = turns
      @keep = keep
      @seconds = seconds
      @install = install
      @gems = PeerGems.new(install:)
      @needs = Needs.new(@gems, install:)
      @child_options = { timeout:, yjit:, prefix: dear_calls ? DearCalls.prefix(dear_calls) : [] }
      @env = {}
      @facts = {}
      @results = {}
      @lost = 0 # seconds
      @missing = {}
      groups = rows.group_by(&:group)
      @peers = groups.to_h { |group, own| [group, available(peers || Bench.peers_of(group), own)] }
      @cells = rows.flat_map { |row| cells_of(row) }.to_h { |cell| [[cell.row.name, cell.peer.name], cell] }
    end

    # The peers of a group that can run here, the base first.
    def peers(group) = @peers.fetch(group)

    def rounds(group) = @rounds || group.rounds

    def turns(group) = @turns || group.turns

    # How often #run will yield.
    def steps = @cells.values.map(&:row).sum { |row| rounds(row.group) * turns(row.group) }

    # Runs everything; yields the cell before each measurement. Rounds of different rows are interleaved where the
    # group does not keep its processes.
    def run(&)
      drop_rows_that_miss_something
      groups = batches.group_by { |cells| cells.first.row.group }
      groups.each_key { |group| prepare(group) }
      kept, others = groups.partition { |group, _| group.keep || @keep }
      kept.each do |group, batches|
        with_children { |child_of| batches.each { |cells| rounds(group).times { round(group, cells, child_of, &) } } }
      end
      in_time(others.map { |group, _| rounds(group) }.max.to_i) { |number| pass(others, number, &) }
      self
    end

    private

    # The peers that run one of the rows, and can be had. The others of them are noted, with the reason.
    def available(peers, rows)
      peers.uniq.select { |peer| rows.any? { |row| peer.runs?(row) } }.reject do |peer|
        @missing[peer.name] = @gems.missing(peer) || peer.prepare&.call unless @missing.key?(peer.name)
        @missing.compact!
        @missing.key?(peer.name)
      end
    end

    def cells_of(row) = @peers.fetch(row.group).select { |peer| peer.runs?(row) }.map { |peer| Cell.new(row, peer, []) }

    def drop_rows_that_miss_something
      @cells.values.map(&:row).uniq.each do |row|
        @missing[row.name] = @needs.missing(row) || next
        @cells.delete_if { |(name, _), _| name == row.name }
      end
      @env.merge!(@needs.env)
      @facts.merge!(@needs.facts)
    end

    def prepare(group)
      env, facts = group.setup&.call(install: @install)
      @env.merge!(env || {})
      @facts.merge!(facts || {})
    end

    # As many passes as there is time for, one at least. Peers that failed in this pass take no part in the next one.
    def in_time(most)
      deadline = now + @seconds if @seconds
      most.times do |number|
        started = now
        @lost = 0
        yield(number)
        break if deadline && now + (now - started - @lost) > deadline
      end
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    # One round of each row that has one left.
    def pass(groups, number, &)
      groups.each do |group, batches|
        next if number >= rounds(group)

        batches.each { |cells| with_children { |child_of| round(group, cells, child_of, &) } }
      end
    end

    # Lists of cells that are measured by turns; those of a peer stay together, for they are compared.
    def batches
      @cells.values.group_by { |cell| cell.row.batch || cell.row.name }.values
        .map { |cells| cells.group_by(&:peer).values.flatten }
    end

    # The child of each cell. It starts when it is asked, and again after it was stopped.
    def with_children
      children = {}
      yield(lambda do |cell|
        children[[cell.peer.name, *(cell.row.name unless cell.row.group.share || @keep)]] ||=
          Child.new(cell.peer, env: @env.merge(@gems.env), **@child_options)
      end)
    ensure
      children.each_value(&:stop)
    end

    def round(group, cells, child_of)
      cells.each { |cell| cell.rounds << [] }
      turns(group).times do
        # Where the order could matter nobody gains from a place; those of a peer stay together.
        order = group.shuffle ? cells.group_by(&:peer).values.shuffle.flat_map(&:shuffle) : cells
        order.each do |cell|
          yield cell if block_given?
          next if cell.failure

          started = now
          add_turn(cell, child_of.call(cell))
          @lost += now - started if cell.failure
        end
      end
    end

    def add_turn(cell, child)
      cell.operations ||= operations(cell, child) or return
      answer = child.measure(cell.row, cell.operations, warm_up(cell))
      return cell.fail(answer["status"], answer["detail"]) unless answer["status"] == "ok"
      return if cell.row.expect.nil? && differs?(cell, answer["result"])

      cell.rounds.last << answer
    end

    def warm_up(cell) = cell.row.seconds ? cell.operations : cell.row.operations_at(@scale / 10.0, cell.peer)

    # As many as the row says, or as there is time for.
    def operations(cell, child)
      wanted = cell.row.operations_at(@scale, cell.peer, turns(cell.row.group))
      return wanted unless cell.row.seconds

      answers = Array.new(3) { child.ask(cell.row, FEW.clamp(..wanted)) }
      failed = answers.find { |answer| answer["status"] != "ok" }
      return cell.fail(failed["status"], failed["detail"]) if failed

      one = answers.map { |answer| answer[cell.row.figure.to_s] / answer["operations"] }.min
      (cell.row.seconds * @scale / [one, 1e-8].max).ceil.clamp(1, wanted)
    end

    def differs?(cell, result)
      first = @results[cell.row.name] ||= result
      cell.fail("wrong result", "#{result} in place of #{first}") unless result == first
      result != first
    end
  end
end
