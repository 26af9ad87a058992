# frozen_string_literal: true

module TestSupport
  # What signal handlers do, and what must come of it.
  module TrapCases
    # What the handler does => what the script says then, in alphabetical order. The last word is what Heddle.run ends
    # with.
    ALL = {
      "say :nothing" => "handled nothing returned",
      "sleep(0.01)" => "handled returned",
      "Heddle.spawn { say :ran }" => "handled ran returned",
      "Heddle.spawn { sleep(0.01); say :ran }.value" => "handled ran returned",
      "Fiber.schedule { say :ran }" => "handled ran returned",
      "Fiber.schedule { sleep(0.01); say :ran }" => "handled ran returned",
      "Heddle.spawn { exit(7) }; sleep" => "ended SystemExit",
      "Fiber.schedule { exit(7) }; sleep" => "ended SystemExit",
      "Fiber.schedule { raise Interrupt }; $read.close; sleep" => "ended Interrupt",
      "$in << :exit; sleep" => "ended SystemExit",
      "$in << :item; say $out.pop" => "handled item returned",
      "$read.close" => "closed handled returned",
      "$sleeper.cancel.wait" => "ended handled returned",
      "$go << true; say $short.value" => "handled short returned",
      "$go << true; say $short.wait.class" => "Heddle::Task handled returned",
      "$sleeper.fiber.raise(ArgumentError)" => "ended handled raised returned",
      "$sleeper.fiber.kill" => "ended handled returned",
      "Thread.main.raise(ZeroDivisionError)" => "ended ZeroDivisionError",
      "raise ZeroDivisionError" => "ended ZeroDivisionError",
      "exit(7)" => "ended SystemExit",
      "throw :outside" => "ended thrown",
      "$write.write('text'); say $read.readpartial(9)" => "handled text returned",
      "Heddle.spawn { sleep(0.01); $write.write('text') }; say $read.readpartial(9)" => "handled text returned",
      "IO.select([$read], nil, nil, 0.01)" => "handled returned",
      "Process.wait(spawn('exit 3')); say $?.exitstatus" => "3 handled returned",
      "begin; Timeout.timeout(0.01) { sleep }; rescue Timeout::Error; say :late; end" => "handled late returned",
      "Heddle.dump(StringIO.new)" => "handled returned",
      "say Heddle.run { Heddle.spawn { sleep(0.01); :nested }.value }" => "handled nested returned",
      "Thread.new { sleep(0.01); say :thread }.join" => "handled thread returned",
      "say Fiber.new { sleep(0.01); :resumed }.resume" => "handled resumed returned",
      "say Enumerator.new { |y| sleep(0.01); y << :item }.next" => "handled item returned",
      "Process.kill(:USR2, $$); sleep(0.01)" => "handled other returned"
    }.freeze

    # In a blocking fiber nobody else runs while the handler waits, and `throw` and Timeout do what they do there.
    WAITS_FOR_OTHERS = /; sleep\z|\.value|\.wait\b|\.pop|readpartial\(9\)\z|throw|Timeout|Heddle.run/
    IN_A_BLOCKING_FIBER = ALL.reject { |action, _| WAITS_FOR_OTHERS.match?(action) }.freeze

    SCRIPT = <<~RUBY
      require "stringio"
      require "timeout"
      def say(word) = $said << word.to_s
      def whole_task(&) = Heddle.spawn { Heddle.without_time_slices(&) }
      $said = []
      $over = false
      $in, $out, $go, handled = Array.new(4) { Thread::Queue.new }
      trap(:USR2) { say :other }
      trap(:USR1) { ACTION; say :handled; handled << true }
      last = catch(:outside) do
        Heddle.run do
          $read, $write = IO.pipe
          Heddle.spawn { $out << $in.pop.tap { |item| exit(8) if item == :exit } }
          $sleeper = whole_task do
            sleep
          rescue ArgumentError
            say :raised
          ensure
            say :ended unless $over
          end
          $short = Heddle.spawn { $go.pop && "short" }
          whole_task { IO.select([$read]) rescue ($over || say(:closed)) }
          STATE
          $over = true
          $in.close
          $go.close
          $sleeper.cancel
          $read.close
        end
        :returned
      rescue Exception => e
        e.class
      end
      puts [*$said.sort, last || :thrown].join(" ")
    RUBY

    STATES = {
      waiting: "spawn('sleep 0.03; kill -USR1 ' + $$.to_s); handled.pop",
      computing: "Heddle.spawn { 9.times { |i| i.to_s }; Process.kill(:USR1, $$); handled.pop }.value",
      blocking: "Fiber.new(blocking: true) { Process.kill(:USR1, $$) }.resume; handled.pop"
    }.freeze

    # The program of a case: it prints what was said.
    def self.script(action, state) = SCRIPT.sub("ACTION") { action }.sub("STATE") { STATES.fetch(state) }
  end
end
