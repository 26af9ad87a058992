# frozen_string_literal: true

module Heddle
  module Connect
    # Collects the addresses of a host as they become known.
    #
    # One lookup asks for both families at once, and a hosts file answers it at once. Two lookups, one for each family,
    # would send the question for the IPv6 addresses of a localhost that has none to the name server. When the lookup
    # takes longer than RESOLUTION_DELAY, each family is looked up by itself, too, so that an answer for one need not
    # wait for the other.
    class Addresses
      # @return [Array<Lookup>] the lookups under way
      def lookups = @lookups.values

      # @param target [Target]
      # @param family [Integer] AF_UNSPEC: both
      # @param lookup [Lookup, nil] a lookup that was started before
      def initialize(target, family, lookup = nil)
        @target = target
        @family = family
        @lookups = { family => lookup || start(family) }
        @waiting = []
        @known = []
        @errors = []
        @split_at = target.began_at + RESOLUTION_DELAY if target.racing? && family == Socket::AF_UNSPEC
        collect if lookup
      end

      # @return [Float, nil] the latest time for the next call of #collect
      attr_reader :split_at

      # Are all addresses known?
      def finished? = @lookups.empty?

      # Is there no address to try at the moment?
      def empty? = @waiting.empty?

      # Is one address left, and can no other arrive?
      def single? = finished? && @waiting.size == 1

      # Takes the results that the resolver has found by now.
      def collect
        @lookups.to_a.each { |family, lookup| settle(family, lookup) if @lookups.key?(family) && lookup.finished? }
        split if @split_at && Clock.now >= @split_at
      end

      # @return [String, nil] the next address: the families in turn
      def shift
        index = @waiting.index { |address| Connect.family_of(address) == @next_family } if @next_family
        address = @waiting.delete_at(index || 0)
        @next_family = Connect.other_family(address) if address && @target.racing?
        address
      end

      # @return [Exception] the reason why no address is known
      def error = @errors.last

      # Ends the lookups under way.
      def release
        @split_at = nil
        @lookups.each_value(&:release)
        @lookups.clear
      end

      private

      def start(family)
        @target.scheduler.lookup(@target.name, @target.service, family)
      end

      # Records that a lookup has ended.
      def settle(family, lookup)
        @lookups.delete(family)
        error = lookup.error(@target.resolver)
        error ? @errors << @target.resolution_error(error) : add(lookup.addresses)
        lookup.release
        release if family == @family ? !error || @known.empty? : others_done?
      end

      # Is only the lookup of both families still under way? It can add nothing new.
      def others_done?
        (@lookups.keys - [@family]).empty?
      end

      def add(addresses)
        new = addresses - @known
        @known.concat(new)
        @waiting.concat(new)
      end

      def split
        @split_at = nil
        [Socket::AF_INET6, Socket::AF_INET].each { |family| @lookups[family] = start(family) }
      end
    end
  end
end
