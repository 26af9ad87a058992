# frozen_string_literal: true

# What a row and a peer are, and how their files are found and loaded. Used by the runner and by its children.
module Bench
  ROOT = File.expand_path("..", __dir__)

  # One workload: plain Ruby that spawns its tasks through the peer.
  #
  # name::     what --rows calls it
  # title::    one line for people
  # unit::     what one operation is
  # operations:: how many at --scale 1, the same for every peer but for its share
  # multiple:: their number is rounded up to a multiple of this
  # fixed::    the row is about this number of operations at once
  # figure::   :cpu or :wall, whichever says more about this workload
  # expect::   from the number of operations to the result that the workload has to return
  # work::     from (peer, number of operations) to the result
  Row = Struct.new(:name, :title, :unit, :operations, :multiple, :fixed, :figure, :expect, :work, :file,
                   keyword_init: true) do
    # The number of operations for a peer.
    def operations_at(scale, peer)
      wanted = (operations * scale * (fixed ? 1 : peer.share)).ceil.clamp(1..)
      (wanted + multiple - 1) / multiple * multiple
    end
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

    def supports_this_ruby? = Gem::Requirement.new(ruby).satisfied_by?(Gem.ruby_version)
  end

  class << self
    def rows = @rows ||= {}
    def peers = @peers ||= {}

    def row(name, title, unit:, operations:, expect:, multiple: 1, fixed: false, figure: :cpu, &work)
      file = caller_locations(1, 1).first.absolute_path
      rows[name] = Row.new(name:, title:, unit:, operations:, multiple:, fixed:, figure:, expect:, work:, file:)
    end

    def peer(name, gems: [], ruby: ">= 0", rows: nil, share: 1, env: {}, default: true, command: nil, prepare: nil,
             &adapter)
      file = caller_locations(1, 1).first.absolute_path
      peers[name] = Peer.new(name:, gems:, ruby:, rows:, share:, env:, default:, command:, prepare:, adapter:, file:)
    end

    # Loads the row files in the order of the table, then the peers.
    def load_all
      %w[tasks queues pipes network closes].each { |name| require_relative "../rows/#{name}" }
      Dir[File.join(ROOT, "peers", "*.rb")].each { |file| require file }
    end
  end
end
