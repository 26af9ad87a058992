# frozen_string_literal: true

module Heddle
  module Connect
    # The addresses of a host, as they become known.
    #
    # One lookup asks for both families at once, which a hosts file answers at once. (Asking for each of them by
    # itself would send the IPv6 addresses of a localhost that has none to the name server.) When it takes longer than
    # RESOLUTION_DELAY, each family is looked up by itself too, so that an answer for one need not wait for the other.
    class Addresses
      # @return [Array<Lookup>] those under way
      def lookups = @lookups.values

      # @param target [Target]
      # @param family [Integer] AF_UNSPEC: both
      # @param lookup [Lookup, nil] one that was started before
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

      # @return [Float, nil] when #collect is to be called again at the latest
      attr_reader :split_at

      # Is everything known that ever will be?
      def finished? = @lookups.empty?

      # Is there no address to be tried, for now?
      def empty? = @waiting.empty?

      # The one address that is left, if it is the only one and no other can come.
      def single? = finished? && @waiting.size == 1

      # Takes what the resolver has found by now.
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

      # @return [Exception] why there is no address
      def error = @errors.last

      # Ends what is under way.
      def release
        @split_at = nil
        @lookups.each_value(&:release)
        @lookups.clear
      end

      private

      def start(family)
        @target.scheduler.lookup(@target.name, @target.service, family)
      end

      # A lookup has ended.
      def settle(family, lookup)
        @lookups.delete(family)
        error = lookup.error(@target.resolver)
        error ? @errors << @target.resolution_error(error) : add(lookup.addresses)
        lookup.release
        release if family == @family ? !error || @known.empty? : others_done?
      end

      # Are only the families together still being looked up? Nothing new can come of it.
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
