# frozen_string_literal: true

require "prism"
require "support/api/public_api"

module TestSupport
  # Finds the parts of Heddle that the sources of heddle-server use although they are not public: they are private, or
  # marked @private, or no document names them.
  class PublicUse
    ROOT = PublicApi::ROOT
    SERVER = "heddle-server/lib/"
    # Methods that reach what is private.
    AROUND = %i[send __send__ instance_variable_get instance_variable_set instance_eval instance_exec class_eval
                const_get].freeze
    # Of Ruby's own objects, which have no public method for it.
    EXCEPTIONS = ["@io.__send__(:stop)"].freeze

    # @param sources [Hash{String => String}] texts by path
    def initialize(sources)
      @trees = sources.transform_values { |text| Prism.parse(text).value }
      @own = {}
      @trees.each_value { |tree| walk(tree) { |node, nesting| note(node, nesting) } }
    end

    # @return [Array<String>] a line for each use
    def found
      @trees.flat_map do |path, tree|
        lines = []
        walk(tree) do |node, nesting|
          reason = reason(node, nesting, path) and lines << "#{path}:#{node.location.start_line}: #{reason}"
        end
        lines
      end.uniq
    end

    private

    # Yields each node with the names of the modules around it.
    def walk(node, nesting = [], &block)
      yield(node, nesting)
      inner = nesting
      case node
      when Prism::ModuleNode, Prism::ClassNode then inner = [*nesting, node.constant_path.slice]
      end
      node.compact_child_nodes.each { |child| walk(child, inner, &block) }
    end

    # Notes what the server defines itself.
    def note(node, nesting)
      case node
      when Prism::ModuleNode, Prism::ClassNode then @own[[*nesting, node.constant_path.slice].join("::")] = true
      when Prism::ConstantWriteNode then @own[[*nesting, node.name].join("::")] = true
      end
    end

    def reason(node, nesting, path)
      case node
      when Prism::ConstantReadNode, Prism::ConstantPathNode
        name = resolve(node.slice, nesting) and !public?(name) and "#{name} is not public"
      when Prism::CallNode then reason_of_call(node, nesting, path)
      end
    end

    def reason_of_call(node, nesting, path)
      argument = node.arguments&.arguments&.first
      case node.name
      when :require then reason_of_require(argument)
      when :require_relative
        inside = File.expand_path(argument.unescaped, File.dirname("/#{path}")).start_with?("/#{SERVER}")
        "#{argument.unescaped} is outside of the gem" unless inside
      when *AROUND
        "#{node.slice} may reach what is private" if argument.is_a?(Prism::SymbolNode) && node.receiver &&
                                                     !EXCEPTIONS.include?(node.slice)
      else reason_of_method(node, argument, nesting)
      end
    end

    def reason_of_require(argument)
      return unless argument.is_a?(Prism::StringNode)

      feature = argument.unescaped
      return unless feature.match?(%r{\Aheddle(/|\z)}) && File.file?(File.join(ROOT, "lib/#{feature}.rb"))

      "no document names require \"#{feature}\"" unless documents.include?("require \"#{feature}\"")
    end

    # A method of a module of Heddle, or of some object, whose name only private methods of Heddle have.
    def reason_of_method(node, argument, nesting)
      constant = [Prism::ConstantReadNode, Prism::ConstantPathNode].include?(node.receiver.class)
      name = resolve(node.receiver.slice, nesting) if constant
      return "#{name}.#{node.name} is not public" if name && internal?("#{name}.#{node.name}")

      called = node.name == :method && argument.is_a?(Prism::SymbolNode) ? argument.unescaped.to_sym : node.name
      "##{called} of Heddle is not public" if node.receiver && !constant && hidden.include?(called)
    end

    # @return [String, nil] the full name, if it is Heddle's; nil: it is the server's own, or belongs to another library
    def resolve(name, nesting)
      return heddles(name.delete_prefix("::")) if name.start_with?("::")
      return unless name.match?(/\A[A-Z]/)

      head = name[/\A\w+/]
      scopes = (0..nesting.size).map { |depth| nesting.first(nesting.size - depth).join("::") }
      scopes.each do |scope|
        full = [scope, head].reject(&:empty?).join("::")
        return heddles(name.sub(head, full)) if @own.key?(full) || PublicApi.sources.key?(full) || constant?(full)
      end
      nil
    end

    # Constants that are made in C are not in the sources.
    def constant?(name)
      name.match?(/\AHeddle::[A-Z]\w*\z/) && Heddle.const_defined?(name.delete_prefix("Heddle::"), false)
    end

    def heddles(name) = (name if name.match?(/\AHeddle(::|\z)/) && !@own.key?(name) && !servers?(name))

    def servers?(name) = PublicApi.sources[name]&.file.to_s.start_with?(SERVER)

    def public?(name) = PublicApi.documented.key?(name)

    def internal?(name) = PublicApi.sources.key?(name) && !PublicApi.documented.key?(name)

    # @return [Array<Symbol>] names of methods of Heddle's objects that no public method, none of the server and none of
    #   Ruby's own has
    def hidden
      @hidden ||= begin
        methods = PublicApi.sources.select { |_, object| object.type == :method && object.scope == :instance }
        private, others = methods.values.partition do |object|
          public?(object.namespace.path) && !servers?(object.namespace.path) && !public?(object.path)
        end
        ruby = ObjectSpace.each_object(Module).reject { |one| one.name.to_s.start_with?("Heddle") }
          .flat_map { |one| one.instance_methods(false) + one.private_instance_methods(false) }
        private.map(&:name).uniq - others.map(&:name) - ruby
      end
    end

    def documents
      @documents ||= Dir.glob(%w[*.md guides/*.md lib/**/*.rb], base: ROOT).map do |name|
        lines = File.readlines(File.join(ROOT, name))
        name.end_with?(".rb") ? lines.grep(/^\s*#/).join : lines.join
      end.join
    end
  end
end
