# frozen_string_literal: true

# What a group, a row and a peer are, and how their files are found and loaded. Used by the runner and by its children.
module Bench
  ROOT = File.expand_path("..", __dir__)

  # Raised when something that rows need cannot be had here.
  class Missing < StandardError; end

  # Rows that are measured in the same way and stand in one table.
  #
  # name::    what --rows calls all of them
  # title::   one line for people
  # peers::   the names of the peers that run them, the base first; nil for all that are run by default
  # rounds::  how many samples there are
  # turns::   parts of each sample: peers that are compared do them by turns
  # share::   one process of each peer runs all rows that are measured by turns (else each row has its own)
  # keep::    the processes stay for all rows and rounds (else there are new ones in each)
  # shuffle:: each turn has another order
  # best::    the fastest round counts (else the median)
  # figures:: a table for each of them; nil for one table of the figure that each row names
  # own::     the ratios compare with the row's base on the same peer, what that is in words (else on the first peer)
  # beside::  heading of the column with figures from elsewhere
  # note::    what else has to be known about the table
  # needs::   what its rows need (see Needs)
  # setup::   run once before, with install: whether it may install what it needs; returns what to add to the children's
  #           environment, and facts for the report
  Group = Struct.new(:name, :title, :peers, :rounds, :turns, :share, :keep, :shuffle, :best, :figures, :own, :beside,
                     :note, :needs, :setup, keyword_init: true)

  # A line of a table: a row, and a figure that was measured with it.
  Line = Struct.new(:row, :figure, :title, :unit)

  # One workload: plain Ruby that spawns its tasks through the peer.
  #
  # name::     what --rows calls it
  # title::    one line for people
  # unit::     what one operation is
  # operations:: how many at --scale 1 in a round, the same for every peer but for its share
  # multiple:: their number in a turn is rounded up to a multiple of this
  # fixed::    the row is about this number of operations at once
  # seconds::  does at most the operations that fit in this number of seconds
  # figure::   :cpu or :wall, whichever says more about this workload; or what the workload finds (Costs#found):
  #            :bytes, or microseconds as :p50, :p99, :max
  # also::     figure => [title, unit] for further lines of the table
  # warm_up::  whether a smaller number of operations comes first
  # needs::    what it needs beside what its group does (see Needs)
  # base::     name of the row that ratios are to; nil for this one
  # goal::     name of a peer => the highest ratio that it may have
  # batch::    rows of one batch are measured by turns; nil for this one alone
  # beside::   figure => text for the group's column of that name
  # expect::   from the number of operations to the result that the workload has to return; nil: any, but all the same
  # work::     from (peer, number of operations) to the result
  Row = Struct.new(:name, :title, :group, :unit, :operations, :multiple, :fixed, :seconds, :figure, :also, :warm_up,
                   :needs, :base, :goal, :batch, :beside, :expect, :work, :file, keyword_init: true) do
    # The number of operations for a peer, in one of this number of turns.
    def operations_at(scale, peer, turns = 1)
      wanted = (operations * scale * (fixed ? 1 : peer.share) / turns).ceil.clamp(1..)
      (wanted + multiple - 1) / multiple * multiple
    end

    # Its lines in a table of that figure, or in the table of the figures that each row names.
    def lines(shown = nil)
      further = shown ? {} : also
      [Line.new(self, shown || figure, title, unit), *further.map { |other, words| Line.new(self, other, *words) }]
    end

    def all_needs = [*group.needs, *needs]
  end

  # One implementation that runs the rows.
  #
  # gems::    the gems it needs, its own first
  # ruby::    the Ruby versions that it supports, as a gem requirement
  # rows::    the names of the rows it can run; nil for all
  # share::   does this share of the operations, to save time on a slow one (not where a row is about their number)
  # env::     environment of its child processes
  # command:: for a peer that is no Ruby: from (operations, warm-up operations) to a command line
  # prepare:: run once in the runner; returns why the peer cannot run, or nil
  # adapter:: run in the child: returns an object with run, spawn and thread
  Peer = Struct.new(:name, :gems, :ruby, :rows, :share, :env, :default, :command, :prepare, :adapter, :file,
                    keyword_init: true) do
    def runs?(row) = rows.nil? || rows.include?(row.name)

    # Heddle itself, in whichever way.
    def heddle? = name.start_with?("heddle")

    def supports_this_ruby? = Gem::Requirement.new(ruby).satisfied_by?(Gem.ruby_version)
  end

  class << self
    def groups = @groups ||= {}
    def rows = @rows ||= {}
    def peers = @peers ||= {}

    # The rows that are defined in the block belong to it.
    def group(name, title, rounds: 5, turns: 1, **options)
      @group = groups[name] ||= Group.new(name:, title:, rounds:, turns:, **options)
      yield
    ensure
      @group = nil
    end

    def row(name, title, unit:, operations:, expect: nil, multiple: 1, figure: :cpu, also: {}, warm_up: true,
            **options, &work)
      file = caller_locations(1, 1).first.absolute_path
      rows[name] = Row.new(name:, title:, group: @group || groups.fetch("operations"), unit:, operations:, multiple:,
                           figure:, also:, warm_up:, expect:, work:, file:, **options)
    end

    def peer(name, gems: [], ruby: ">= 0", rows: nil, share: 1, env: {}, default: true, command: nil, prepare: nil,
             &adapter)
      file = caller_locations(1, 1).first.absolute_path
      peers[name] = Peer.new(name:, gems:, ruby:, rows:, share:, env:, default:, command:, prepare:, adapter:, file:)
    end

    # Loads the row files in the order of the table, then the peers.
    def load_all
      %w[tasks queues pipes network closes servers waiting slices memory main_job tail scale bounds guard would_block
         replaced_methods connect_names memcached pools fiber_pools net_http database rack_middleware].each do |name|
        require_relative "../rows/#{name}"
      end
      Dir[File.join(ROOT, "peers", "*.rb")].each { |file| require file }
    end
  end

  group("operations", "Operations, by implementation") { nil }
end
