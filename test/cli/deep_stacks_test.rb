# frozen_string_literal: true

require_relative "../test_helper"

# Ruby is started once more, with other stacks: signals that come meanwhile.
class DeepStacksTest < HeddleTest
  # What the kernel leaves to Ruby (caught) and what is ignored, in the exec and after one that has failed.
  SCRIPT = <<~RUBY
    require "heddle/cli/run/deep_stacks"

    def signals
      %w[SigCgt SigIgn].map do |kind|
        mask = File.read("/proc/self/status")[/^\#{kind}:\\s*(\\h+)/, 1].to_i(16)
        %w[HUP INT QUIT TERM USR1 USR2].select { |name| mask[Signal.list[name] - 1] == 1 }
      end
    end

    Heddle::CLI::DeepStacks.define_singleton_method(:exec) do |*, **|
      p(signals)
      raise(Errno::ENOMEM)
    end
    trap("USR1") { nil }
    p(signals)
    Heddle::CLI::DeepStacks.make_room([])
    p(signals)
  RUBY

  # Ruby would note them only, and forget them in the exec.
  def test_the_kernel_does_what_a_signal_asks_for
    out = run_command("sh", "-c", 'trap "" HUP; exec "$@"', "sh", *ruby_command, "-e", SCRIPT).out
    caught = %w[INT QUIT TERM USR1 USR2]

    assert_equal([[caught, ["HUP"]], [[], ["HUP"]], [caught, ["HUP"]]].map(&:inspect), out.lines(chomp: true))
  end
end
