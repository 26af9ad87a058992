# frozen_string_literal: true

require "rbs"
require "support/api/public_api"

module TestSupport
  # The signatures in sig/ and heddle-server/sig/, as RBS reads them. Names are those of PublicApi.
  class Signatures
    FOLDERS = %w[sig heddle-server/sig].map { |name| File.join(PublicApi::ROOT, name) }.freeze
    # What follows `rbs` on the command line to find them.
    OPTIONS = ["-r", "timeout", "-r", "optparse", *FOLDERS.flat_map { |folder| ["-I", folder] }].freeze

    # The parameters of a method: names of the positional ones that are needed and of all, of the keywords that are
    # needed and of all, and whether there is a *rest, a **rest and a block.
    Shape = Data.define(:needed, :positional, :rest, :needed_keywords, :keywords, :keyrest, :block)

    # @return [RBS::Environment]
    attr_reader :environment

    def initialize
      loader = RBS::EnvironmentLoader.new
      %w[timeout optparse].each { |library| loader.add(library:, version: nil) }
      FOLDERS.each { |folder| loader.add(path: Pathname(folder)) }
      @environment = RBS::Environment.from_loader(loader).resolve_type_names
      @builder = RBS::DefinitionBuilder.new(env: @environment)
    end

    # @return [Hash{String => String, nil}] the classes and modules, each with its superclass
    def modules
      own(@environment.class_decls.keys).to_h do |type|
        parent = @builder.ancestor_builder.one_instance_ancestors(type).super_class&.name
        [name_of(type), parent && name_of(parent)]
      end
    end

    # @return [Array<String>]
    def constants = own(@environment.constant_decls.keys).map { |type| name_of(type) }

    # @return [Hash{String => Shape}]
    def methods
      @methods ||= own(@environment.class_decls.keys).map do |type|
        defined(type, @builder.build_singleton(type), ".").merge(defined(type, @builder.build_instance(type), "#"))
      end.reduce({}, :merge)
    end

    private

    def own(types) = types.select { |type| name_of(type).match?(/\AHeddle(::|\z)/) }

    def name_of(type) = type.to_s.delete_prefix("::")

    def defined(type, definition, mark)
      methods = definition.methods.select { |name, method| method.defined_in == type && !(mark == "." && name == :new) }
      methods.to_h { |name, method| ["#{name_of(type)}#{mark}#{name}", shape(method.method_types)] }
    end

    # Of all forms together, for Ruby has one method for them.
    def shape(forms)
      lists = forms.map { |form| positional(form.type) }
      types = forms.map(&:type)
      Shape.new(needed: types.map { |type| type.required_positionals.size }.min,
                positional: lists.max_by(&:size),
                rest: types.any?(&:rest_positionals),
                needed_keywords: types.map { |type| type.required_keywords.keys }.reduce(:&).sort,
                keywords: types.flat_map { |type| type.required_keywords.keys + type.optional_keywords.keys }.uniq.sort,
                keyrest: types.any?(&:rest_keywords),
                block: forms.any?(&:block))
    end

    def positional(type)
      [*type.required_positionals, *type.optional_positionals].map(&:name)
    end
  end
end
