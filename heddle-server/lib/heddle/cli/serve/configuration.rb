# frozen_string_literal: true

module Heddle
  module CLI
    class Serve
      # A configuration file of `heddle serve`, in Ruby. Each long option is a method of the same name, with "_" for
      # "-"; the hooks take blocks:
      #
      #   bind "unix:/run/app/app.sock"
      #   workers 4
      #   before_fork { |number| ... }
      #
      # @private
      class Configuration
        # before_fork::        in the first process, before a worker is started; gets its number
        # on_worker_boot::     in the worker, before it serves (without preload: before it loads the application)
        # on_worker_shutdown:: in the worker, when it has served
        # on_booted::          in the first process, when the server is ready
        # on_restart::         in the first process, before another program takes its place (USR2)
        HOOKS = %i[before_fork on_worker_boot on_worker_shutdown on_booted on_restart].freeze

        # @return [Array<String>] the options, as the command line has them
        attr_reader :arguments
        # @return [Hash{Symbol => Array<Proc>}]
        attr_reader :hooks

        # @param path [String]
        # @param names [Array<String>] of the options, without their dashes
        # @raise [UsageError] if the file cannot be read
        def initialize(path, names)
          @arguments = []
          @hooks = HOOKS.to_h { |name| [name, []] }
          script = Object.new
          names.each { |name| define_option(script, name) }
          HOOKS.each { |name| define_hook(script, name) }
          script.instance_eval(File.read(path), path)
        rescue SystemCallError => e
          raise UsageError, "heddle serve: invalid argument: --config #{path} (#{e.class.new.message})"
        end

        private

        def define_option(script, name)
          arguments = @arguments
          script.define_singleton_method(name.tr("-", "_")) do |*values|
            arguments.concat((values.empty? ? [true] : values.flatten).filter_map do |value|
              case value
              when true then "--#{name}"
              when false then "--no-#{name}"
              when nil then nil
              else "--#{name}=#{value}"
              end
            end)
          end
        end

        def define_hook(script, name)
          hooks = @hooks
          script.define_singleton_method(name) do |&block|
            raise ArgumentError, "#{name} needs a block" unless block

            hooks[name] << block
          end
        end
      end
    end
  end
end
