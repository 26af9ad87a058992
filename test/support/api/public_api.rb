# frozen_string_literal: true

require "heddle/accelerate/net_http"
require "heddle/cli"
require "heddle/cli/options"
require "heddle/prometheus"
require "heddle/rack"
require "heddle/rails/inheritance" # (the rest of heddle/rails needs a gem)
require "heddle/sidekiq/settings" # (the same)
require "heddle/testing"
require "yard"
require "support/clients"

module TestSupport
  # The public API, once as Ruby has it and once as YARD reads it in the sources. A name is "Heddle.run" or
  # "Heddle::Task#value"; a constructor is "Heddle::Limiter#initialize".
  #
  # Heddle::Server is a part of it where its gems are there.
  module PublicApi
    ROOT = File.expand_path("../../..", __dir__)
    # What Data.define makes.
    DATA_METHODS = Data.define.singleton_methods(false).freeze

    class << self
      # @return [Hash{String => YARD::CodeObjects::Base}] classes, modules, constants and methods
      def documented
        @documented ||= sources.select do |name, object|
          public?(object) && (server? || !name.start_with?("Heddle::Server"))
        end
      end

      # @return [Boolean] whether Heddle::Server can be loaded
      def server?
        return @server unless @server.nil?

        @server = %w[protocol-http1 protocol-rack].none? { |gem| Clients.load(gem, gem.tr("-", "/")) }
        require "heddle/server" if @server
        @server
      end

      # @return [Hash{String => YARD::CodeObjects::Base}] what is internal, too
      def sources
        @sources ||= Dir.chdir(ROOT) do
          quietly { parse }
          YARD::Registry.all(:class, :module, :constant, :method).to_h { |object| [object.path, object] }
        end
      end

      # @return [Hash{String => Module}] Heddle and its public constants that are modules, without what is @private
      def modules
        server?
        @modules ||= modules_in(Heddle)
      end

      # @return [Hash{String => Method, UnboundMethod}] the public ones that these modules define, without what is
      #   @private
      def methods
        @methods ||= modules.map { |name, one| singleton_methods_of(name, one).merge(instance_methods_of(name, one)) }
          .reduce({}, :merge).reject { |name, _| internal?(name) }
      end

      private

      def parse
        command = YARD::CLI::Yardoc.new
        command.parse_arguments # .yardopts
        YARD::Registry.clear
        YARD.parse(command.files, command.excluded, YARD::Logger::ERROR)
      end

      # YARD itself is not free of warnings.
      def quietly
        verbose = $VERBOSE
        $VERBOSE = nil
        yield
      ensure
        $VERBOSE = verbose
      end

      # Nothing that it is in is private.
      def public?(object)
        until object.root?
          return false if object.visibility != :public || object.has_tag?(:private)

          object = object.namespace
        end
        true
      end

      def internal?(name) = sources.key?(name) && !documented.key?(name)

      def modules_in(start)
        inner = start.constants(false).map { |name| start.const_get(name) }.grep(Module)
        inner.reject! { |one| internal?(name_of(one)) }
        { name_of(start) => start, **inner.map { |one| modules_in(one) }.reduce({}, :merge) }
      end

      def name_of(one) = Module.instance_method(:name).bind_call(one)

      def singleton_methods_of(name, one)
        made = one.is_a?(Class) && one.superclass == Data ? DATA_METHODS : []
        (one.singleton_methods(false) - made).to_h { |method| ["#{name}.#{method}", one.method(method)] }
      end

      def instance_methods_of(name, one)
        names = one.public_instance_methods(false)
        names += [:initialize] if one.private_method_defined?(:initialize, false)
        names.to_h { |method| ["#{name}##{method}", one.instance_method(method)] }
      end
    end
  end
end
