# frozen_string_literal: true

require "json"
require_relative "../../test_helper"

# In a signal handler, where nobody may lock a Mutex, everything works that works there in plain Ruby, whatever the
# handler interrupts.
contract "SignalHandler" do
  # place => name => what came of it
  def outcomes(*arguments)
    table = File.expand_path("../../support/replaced_methods.rb", __dir__)
    code = "load #{table.dump}; ReplacedMethods.main(nil, *#{arguments.inspect})"
    outcome = nil
    # (Plain Ruby 3.4 itself crashes once in a while: the threads of Socket.tcp outlive its sockets.)
    2.times do
      outcome = run_ruby(code, heddle: false, env: { "HEDDLE_BACKEND" => backend })
      break unless outcome.status.signaled? && arguments.first.nil?
    end

    assert_predicate(outcome, :success?, outcome.err)
    lines = outcome.out.lines.map { |line| JSON.parse(line) }
    lines.group_by(&:first).transform_values { |list| list.to_h { |_, name, said| [name, said] } }
  end

  def test_every_replaced_method
    heddle_only("a script")
    plain = outcomes(nil, "handler")["handler"].reject { |_, said| said.include?("trap context") }
    found = outcomes("after", "handler while all wait", "handler while one computes")

    assert_operator(plain.size, :>, 70)
    found.each_value { |one| assert_empty(plain.reject { |name, said| one[name] == said }) }
  end

  def test_file_operations
    heddle_only("a script")
    code = <<~RUBY
      require "tmpdir"
      dir = Dir.mktmpdir
      trap("USR1") do
        File.write(dir + "/a", "text")
        File.rename(dir + "/a", dir + "/b")
        File.truncate(dir + "/b", 1)
        File.unlink(dir + "/b")
        Dir.rmdir(dir)
        puts(File.read("/proc/self/comm").size.positive?, `echo text`)
        Heddle.spawn { sleep(0.001) }
        Heddle.spawn { sleep }.cancel
        puts("done")
      rescue Exception => e
        puts(e.full_message)
      end
      Heddle.run do
        Heddle.spawn do
          Process.kill("USR1", Process.pid)
          ARGV[0] == "computes" ? (nil while File.exist?(dir)) : sleep(0.1)
          puts("innocent")
        end
        Heddle.spawn { sleep(0.2) }
      end
    RUBY

    %w[computes waits].each do |what|
      said = assert_script(code, what, env: { "HEDDLE_BACKEND" => backend })

      assert_equal("true\ntext\ndone\ninnocent\n", said)
    end
  end
end
