# frozen_string_literal: true

# bin/test: takes 9 s, 0.6 of a core

require_relative "../test_helper"
require "support/plain_ruby"

# Random calls of the methods of IO give in a task what they give in a thread without a scheduler. The message of a
# failure has the seed, with which HEDDLE_SEED repeats it.
contract "ComparedWithPlainRuby" do
  include TestSupport::PlainRuby

  heddle_only "it is compared with itself"

  seconds = Float(ENV.fetch("HEDDLE_FUZZ_SECONDS", "2.5")) / 5
  time_limit seconds.ceil + 120

  encodings = [nil, "UTF-8", "ASCII-8BIT", "ISO-8859-1:UTF-8", "UTF-16LE:UTF-8", "Shift_JIS"]
  separators = [nil, "", "\n", "\r\n", "a", "ab", "é"]
  pieces = ["a", "ab", "\n", "\r\n", "\n\n\n", "é", "日本", "\xff".b, "x" * 70, "line\n" * 30, "\0"]
  sizes = [0, 1, 2, 5, 30, 700, 20_000]

  # Those whose result does not depend on when the bytes come.
  whole_reads = lambda do |random, size, separator|
    [["gets", ->(io) { [io.gets, $_, io.lineno] }],
     ["gets separator", ->(io) { io.gets(separator) }],
     ["gets limit", ->(io) { io.gets(size + 1) }],
     ["gets both", ->(io) { io.gets(separator, size) }],
     ["gets chomp", ->(io) { io.gets(chomp: true) }],
     ["readline", ->(io) { io.readline(separator, chomp: random.rand(2).zero?) }],
     ["each_line", ->(io) { io.each_line(separator).first(2) }],
     ["readlines", ->(io) { io.readlines(chomp: true) }],
     ["read size", ->(io) { io.read(size) }],
     ["read into", ->(io) { [io.read(size, text = +"é"), text] }],
     ["read", :read.to_proc], ["getc", :getc.to_proc], ["getbyte", :getbyte.to_proc],
     ["readchar", :readchar.to_proc], ["readbyte", :readbyte.to_proc], ["eof?", :eof?.to_proc],
     ["ungetc", ->(io) { io.ungetc("é") }], ["ungetbyte", ->(io) { io.ungetbyte("zz") }],
     ["binmode", ->(io) { io.binmode && nil }], ["pos", ->(io) { io.is_a?(File) ? io.pos : nil }]]
  end

  part_reads = lambda do |_random, size, _separator|
    [["readpartial", ->(io) { io.readpartial(size) }],
     ["readpartial into", ->(io) { [io.readpartial(size, text = +"é"), text] }],
     ["sysread", ->(io) { io.sysread(size) }],
     ["read_nonblock", ->(io) { io.read_nonblock(size, exception: false) }],
     ["wait_readable", ->(io) { io.wait_readable(0).class }]]
  end

  file_calls = lambda do |random, size, _separator|
    at = sizes[random.rand(sizes.size)]
    text = pieces[random.rand(pieces.size)] * [1, 3, 20_000][random.rand(3)]
    [["write", ->(io) { io.write(text, "end") }], ["print", ->(io) { io.print(text) }],
     ["puts", ->(io) { io.puts(text, [at]) }], ["<<", ->(io) { (io << text).class }],
     ["syswrite", ->(io) { io.flush && io.syswrite(text) }], ["pwrite", ->(io) { io.flush && io.pwrite(text, at) }],
     ["pread", ->(io) { io.flush && io.pread(size, at) }], ["seek", ->(io) { io.seek(at) }],
     ["seek from the end", ->(io) { io.seek(-size, IO::SEEK_END) }], ["rewind", :rewind.to_proc],
     ["truncate", ->(io) { io.truncate(at) }], ["flush", ->(io) { io.flush.class }],
     ["size", :size.to_proc], ["sync", ->(io) { io.sync = random.rand(2).zero? }]]
  end

  define_method(:seed_of_rounds) { Integer(ENV.fetch("HEDDLE_SEED", Random.new_seed % 1_000_000_000)) }

  # Rounds with seeds one after another, as long as there is time.
  define_method(:compare) do |&round|
    ends = now + seconds
    seed = seed_of_rounds
    loop do
      plain, heddle = in_both { round.call(Random.new(seed)) }
      differs = plain.zip(heddle).index { |one, other| one != other }

      assert_nil(differs, "HEDDLE_SEED=#{seed}: #{difference(plain, heddle, differs)}")
      assert_equal(plain.size, heddle.size)
      seed += 1
      break if now > ends
    end
  end

  # The calls before, and where the two begin to differ.
  define_method(:difference) do |plain, heddle, step|
    next unless step

    texts = [plain, heddle].map { |log| log[step].inspect }
    at = [texts.first.size, *texts.first.each_char.with_index.filter_map { |c, i| i if c != texts.last[i] }].min
    "#{plain[0, step].map { |one| one.inspect[0, 80] }.join("\n")}\n#{texts.map { |text| text[[at - 40, 0].max, 80] }}"
  end

  # Calls some of the methods, and notes what they say.
  define_method(:call_some) do |random, io, calls|
    Array.new(random.rand(1..9)) do
      name, call = calls.call(random, sizes[random.rand(sizes.size)], separators[random.rand(separators.size)])
        .then { |all| all[random.rand(all.size)] }
      [name, outcome { call.call(io) }.then { |said| said.is_a?(Array) && said.first.is_a?(Class) ? said.first : said }]
    end
  end

  define_method(:text_of) { |random| Array.new(random.rand(12)) { pieces[random.rand(pieces.size)].b }.join }

  %w[pipe unix tcp].each do |kind|
    define_method("test_reads_of_#{kind}_while_the_bytes_come") do
      compare do |random|
        reader, writer = stream_pair(kind)
        reader.set_encoding(encodings[random.rand(encodings.size)])
        texts = Array.new(random.rand(4)) { text_of(random) }
        peer = Thread.new do
          texts.each { |text| writer.write(text) && sleep(0.001) }
          writer.close
        end
        [kind, texts, *call_some(random, reader, whole_reads), outcome { reader.read }]
      ensure
        peer&.join
        [reader, writer].compact.each(&:close)
      end
    end

    define_method("test_reads_of_#{kind}_when_all_bytes_are_there") do
      compare do |random|
        reader, writer = stream_pair(kind)
        reader.set_encoding(encodings[random.rand(encodings.size)])
        text = text_of(random)
        writer.write(text)
        writer.close
        reader.wait_readable
        calls = ->(*given) { whole_reads.call(*given) + part_reads.call(*given) }
        [kind, text, *call_some(random, reader, calls)]
      ensure
        [reader, writer].compact.each(&:close)
      end
    end
  end

  # (Not ungetc and ungetbyte: at the beginning of a file Ruby cannot go back before the bytes that were put there, and
  # does so at a later write, if at all.)
  define_method(:test_calls_of_a_file) do
    path = File.join(tempdir, "compared")
    compare do |random|
      text = text_of(random)
      File.binwrite(path, text)
      mode = %w[r+ w+ a+ r a][random.rand(5)]
      external = encodings.first(3)[random.rand(3)]
      said = File.open(path, mode, encoding: external) do |file|
        calls = lambda do |*given|
          all = whole_reads.call(*given) + part_reads.call(*given) + file_calls.call(*given)
          all.reject { |name,| name.start_with?("unget") }
        end
        call_some(random, file, calls)
      end
      [mode, external, text, *said, File.binread(path)]
    end
  end
end
