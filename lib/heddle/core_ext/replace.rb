# frozen_string_literal: true

module Heddle
  # What takes the place of methods of Ruby's own classes; see the files in core_ext/.
  module CoreExt
    @replacements = []

    # A method of Heddle's stands in the class itself, in the place of Ruby's, which it calls by the name
    # <tt>__heddle_METHOD</tt>. It is not prepended: a library that replaces the method once more, later, and calls the
    # one before by an alias would get the prepended one, whose super is the library's, and so on for ever. What has
    # been prepended to the class stays above it, and what has been put in the place of Ruby's method stays below it.
    #
    # That is done when the process makes its first scheduler: until then Ruby's classes are as they were.
    class << self
      # @param owner [Module] the class, or the singleton class
      # @param methods [Module] what to put there
      # @param prefix [String] of the name of what was there before: another one for the second replacement of a method
      # @param visibility [Symbol] of what was there before
      def replace(owner, methods, prefix: "__heddle_", visibility: :private)
        @replacements << [owner, methods, prefix, visibility]
      end

      # Gives methods that stay as they are a second name, for what must not call one that a program has overridden.
      def keep(owner, *names)
        @replacements << [owner, names, "__heddle_", :private]
      end

      # [class, module or array of names, prefix, visibility] of everything that is to be replaced or kept.
      attr_reader :replacements

      # Ends the list, which the other Ractors can read then.
      def complete
        Ractor.make_shareable(@replacements)
      end

      # Called with every scheduler.
      def put_in_place
        return if replaced?
        return wait_for_another unless begin_replacing

        Thread.handle_interrupt(Object => :never) do
          Thread.current.thread_variable_set(:heddle_replaces, true)
          @replacements.each { |arguments| replace_now(*arguments) }
          BlockFormClose.put_in_place
        ensure
          end_replacing
        end
      end

      # As #replace, but at once.
      def replace_now(owner, methods, prefix = "__heddle_", kept_visibility = :private)
        return methods.each { |name| keep_original(owner, name, prefix, kept_visibility) } if methods.is_a?(Array)

        (methods.instance_methods(false) + methods.private_instance_methods(false)).each do |name|
          visibility = visibility_of(owner, name)
          method = methods.instance_method(name)
          define_inheriting(owner, method) unless own_method(owner, name)
          keep_original(owner, name, prefix, kept_visibility)
          owner.define_method(name, method)
          owner.__send__(visibility, name)
        end
      end

      private

      # Another thread or Ractor is about to do it; or this thread itself, which a signal handler has interrupted.
      def wait_for_another
        Thread.pass until replaced? || Thread.current.thread_variable?(:heddle_replaces)
      end

      def keep_original(owner, name, prefix, visibility)
        kept = :"#{prefix}#{name}"
        if owner.method_defined?(kept, false) || owner.private_method_defined?(kept, false)
          raise ArgumentError, "prefix: #{owner}##{name} is replaced twice"
        end

        owner.define_method(kept, own_method(owner, name))
        owner.__send__(visibility, kept)
      end

      # The method that stands in the class itself, below what is prepended.
      def own_method(owner, name)
        method = owner.instance_method(name)
        method = method.super_method until method.nil? || method.owner.equal?(owner)
        method
      end

      # Where the class has only an inherited one: a method that calls that, with the parameters of +method+.
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
