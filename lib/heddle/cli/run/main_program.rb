# frozen_string_literal: true

module Heddle
  module CLI
    # A script that runs as if it were Ruby's main program.
    class MainProgram
      # There is no such script.
      class Missing < StandardError; end

      # @param name [String] as given on the command line, "-" for standard input
      # @return [MainProgram]
      # @raise [Missing] if it cannot be read
      def self.find(name)
        return new(name, name, read_program($stdin), $stdin) if name == "-"

        raise Missing, "Is a directory -- #{name}" if File.directory?(name)

        new(name, File.realpath(name), File.read(name), nil)
      rescue SystemCallError => e
        raise Missing, "#{e.message[/\A[^@]+(?= @)/] || e.message} -- #{name}"
      end

      # Reads up to and including __END__: the rest is left for DATA, and for those who read standard input.
      def self.read_program(io)
        io.each_line.with_object(+"") do |line, program|
          program << line
          return program if line.chomp == "__END__"
        end
      end
      private_class_method :read_program

      # @param name [String] what the script takes itself for: $0 and __FILE__
      # @param path [String] the real path, for require_relative
      # @param source [String]
      # @param data [IO, nil] what DATA is if the source has an __END__; nil: the rest of the file
      def initialize(name, path, source, data)
        @name = name
        @path = path
        @source = source
        @data = data
      end

      # Compiles and runs it. Unlike `load`, this leaves __FILE__ and the names in a backtrace as in a main program.
      # @return [void]
      def run
        $PROGRAM_NAME = @name
        program = compile
        define_data
        program.eval
      end

      private

      def compile
        return RubyVM::InstructionSequence.compile(@source, @name, @path) if @name == "-"

        RubyVM::InstructionSequence.compile_file(@name)
      end

      def define_data
        return unless @source.match?(/^__END__\r?$/) && (line = end_of_program)

        Object.const_set(:DATA, @data || rest_of_file(line))
      end

      # The line of __END__, if it is no part of a heredoc or of a comment. Ruby's own lexer knows.
      def end_of_program
        require "ripper"
        Ripper.lex(@source).find { |_, event,| event == :on___end__ }&.first&.first
      end

      def rest_of_file(line)
        file = File.new(@name)
        line.times { file.gets }
        file
      end
    end
  end
end
