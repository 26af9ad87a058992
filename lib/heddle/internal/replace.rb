# frozen_string_literal: true

require_relative "../patches"

module Heddle
  # Replaces methods of Ruby's own classes: the patches of the register (patches.rb), most of them a small file in
  # core_ext/. Each replacement behaves as Ruby's own method where no Heddle scheduler runs.
  #
  # A method of Heddle stands in the class itself, in the place of Ruby's method, which it calls by the name
  # <tt>__heddle_METHOD</tt>. It is not prepended: a library that replaces the method once more, later, and calls the
  # earlier method by an alias would get the prepended one, whose super is the library's method, and so on for ever. A
  # method that has been prepended to the class stays above it, and a method that has replaced Ruby's own stays below
  # it.
  #
  # Methods are replaced when the process makes its first scheduler: until then Ruby's classes are unchanged.
  #
  # @private
  module CoreExt
    class << self
      # Makes the list of the replacements of the active patches, which all Ractors can read.
      #
      # @return [Array<Array(Patch, Module, Module)>] the patch, the class, and the module with the new methods (or a
      #   Symbol: a method that only gets a second name)
      def replacements
        @replacements ||= Ractor.make_shareable(Patches.all.select(&:active?).flat_map do |patch|
          patch.places.flat_map do |place, contents|
            owner = Object.const_get(place.chop)
            owner = owner.singleton_class if place.end_with?(".")
            [*contents].map { |one| [patch, owner, one.is_a?(Symbol) ? one : const_get(one)] }
          end
        end)
      end

      # Puts the replacements in place. Every new scheduler calls it.
      def put_in_place
        return if replaced?
        return wait_for_another unless begin_replacing

        Thread.handle_interrupt(Object => :never) do
          Thread.current.thread_variable_set(:heddle_replaces, true)
          @replacements.each { |replacement| replace(*replacement) }
          BlockFormClose.put_in_place if Patches[:block_form_close].active?
          DirectIO.put_in_place if Patches[:direct_io].active?
        ensure
          end_replacing
        end
      end

      # Puts the methods of a module in the place of Ruby's. For a Symbol it keeps the method of this name.
      def replace(patch, owner, methods)
        return keep(patch, owner, methods) if methods.is_a?(Symbol)

        (methods.instance_methods(false) + methods.private_instance_methods(false)).each do |name|
          visibility = visibility_of(owner, name)
          method = methods.instance_method(name)
          define_inheriting(owner, method) unless own_method(owner, name)
          keep(patch, owner, name)
          owner.define_method(name, method)
          owner.__send__(visibility, name)
        end
      end

      private

      # Waits while another thread or Ractor puts the patches in place; it may also be this thread, which a signal
      # handler has interrupted.
      def wait_for_another
        Thread.pass until replaced? || Thread.current.thread_variable?(:heddle_replaces)
      end

      def keep(patch, owner, name)
        kept = :"#{patch.kept}#{name}"
        if owner.method_defined?(kept, false) || owner.private_method_defined?(kept, false)
          raise ArgumentError, "kept: #{owner}##{name} is replaced twice"
        end

        owner.define_method(kept, own_method(owner, name))
        owner.__send__(patch.kept_visibility, kept)
      end

      # Returns the method that stands in the class itself, below any prepended one.
      def own_method(owner, name)
        method = owner.instance_method(name)
        method = method.super_method until method.nil? || method.owner.equal?(owner)
        method
      end

      # Where the class only inherits the method, defines one that calls it, with the parameters of +method+.
      def define_inheriting(owner, method)
        parameters = method.parameters.map { |kind, name| kind == :opt ? "#{name} = nil" : name }.join(", ")
        owner.class_eval(<<~RUBY, __FILE__, __LINE__ + 1)
          def #{method.name}(#{parameters}) = super # def read(length = nil, buffer = nil) = super
        RUBY
      end

      def visibility_of(owner, name)
        return :private if owner.private_method_defined?(name)

        owner.protected_method_defined?(name) ? :protected : :public
      end
    end
  end
end
