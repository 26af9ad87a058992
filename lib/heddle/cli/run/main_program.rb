# frozen_string_literal: true

module Heddle
  module CLI
    # A script that runs as if it were Ruby's main program.
    #
    # @private
    class MainProgram
      # The script does not exist.
      class Missing < StandardError; end

      # @param name [String] as given on the command line, "-" for standard input
      # @return [MainProgram]
      # @raise [Missing] if the script cannot be read
      def self.find(name)
        return new(name, nil, read_program($stdin), data: $stdin) if name == "-"

        raise Missing, "Is a directory -- #{name}" if File.directory?(name)

        lines = File.readlines(name, encoding: "UTF-8")
        own = lines.drop(lines_of_shell(lines, name))
        new(name, File.realpath(name), own.join, skipped: lines.size - own.size)
      rescue SystemCallError => e
        raise Missing, "#{e.message[/\A[^@]+(?= @)/] || e.message} -- #{name}"
      end

      # Counts the lines before the Ruby program. The commands of gems begin as shell scripts where the path of Ruby is
      # too long for a shebang, or unknown.
      def self.lines_of_shell(lines, name)
        return 0 unless lines.first&.start_with?("#!") && !lines.first.include?("ruby")

        lines.index { |line| line.start_with?("#!") && line.include?("ruby") } or
          raise Missing, "no Ruby script found in input -- #{name}"
      end
      private_class_method :lines_of_shell

      # Looks for a script where `ruby -S` does. A path is taken as it is.
      #
      # @param name [String]
      # @return [String] the name itself, if no folder has the script
      def self.search(name)
        return name if name == "-" || name.match?(%r{\A\.{0,2}/})

        folders = ENV.values_at("RUBYPATH", "PATH").compact.flat_map { |paths| paths.split(":", -1) }
        folders.map { |folder| place(folder, name) }.find { |path| File.file?(path) } || name
      end

      # An empty part of PATH stands for the current folder.
      def self.place(folder, name)
        folder.empty? ? name : File.join(folder.sub(%r{\A~(?=/|\z)}) { ENV.fetch("HOME", "") }, name)
      end
      private_class_method :place

      # @param lines [Array<String>] the values of the options -e
      # @return [MainProgram]
      def self.of_lines(lines)
        new("-e", nil, [*lines, nil].join("\n").force_encoding(Encoding.find("locale")))
      end

      # Reads up to and including __END__: the rest is left for DATA, and for code that reads standard input.
      def self.read_program(io)
        io.each_line.with_object(+"") do |line, program|
          program << line
          return program if line.chomp == "__END__"
        end
      end
      private_class_method :read_program

      # @return [String] the name that the program sees in $0 and __FILE__
      attr_reader :name

      # @param path [String, nil] the real path of its file, for require_relative
      # @param skipped [Integer] how many lines the file has before the source
      # @param data [IO, nil] the value of DATA if the source has an __END__; nil: the rest of the file
      def initialize(name, path, source, skipped: 0, data: nil)
        @name = name
        @path = path
        @source = source
        @skipped = skipped
        @data = data
      end

      # Compiles and runs the program. Unlike `load`, this leaves __FILE__ and the names in a backtrace as in a main
      # program.
      # @return [void]
      def run
        $PROGRAM_NAME = @name
        program = compile
        define_data
        show_variables_of(program)
        ARGF.lineno = 0 # and so `$.`: the lines of the script have been read
        program.eval
      end

      private

      # Code that is compiled from a String is not called <main> in a backtrace: OwnFrames corrects that.
      def compile
        return RubyVM::InstructionSequence.compile_file(@name) if @path && @skipped.zero?

        keeping_lines { RubyVM::InstructionSequence.compile(@source, @name, @path, @skipped + 1) }
      end

      # Shows the local variables of the program in TOPLEVEL_BINDING, where those of a main program are (ERB reads them
      # there). Until the program has reached its first line, TOPLEVEL_BINDING has the variables of `heddle`.
      def show_variables_of(program)
        return if program.trace_points.none? { |_, event| event == :line }

        first_line = TracePoint.new(:line) do |point|
          first_line.disable
          Object.send(:remove_const, :TOPLEVEL_BINDING)
          Object.const_set(:TOPLEVEL_BINDING, point.binding)
        end
        first_line.enable(target: program)
      end

      # Keeps the lines of the source, because Ruby shows the line of an error and can read it from no file.
      def keeping_lines
        kept = RubyVM.keep_script_lines
        RubyVM.keep_script_lines = true
        yield
      ensure
        RubyVM.keep_script_lines = kept
      end

      def define_data
        return unless (@path || @data) && @source.b.match?(/^__END__\r?$/) && (line = end_of_program)

        Object.const_set(:DATA, @data || rest_of_file(@skipped + line))
      end

      # Finds the line of __END__, if it is not a part of a heredoc or of a comment. Ruby's own lexer decides that.
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
