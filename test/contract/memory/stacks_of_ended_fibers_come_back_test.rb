# frozen_string_literal: true

# bin/test: takes 19 s, 0.6 of a core

require_relative "../../test_helper"

# The stacks of fibers: each takes two of the kernel's memory mappings (vm.max_map_count), and those of fibers that
# have ended come back only when the GC frees the fiber objects.
contract "FiberStacks" do
  # 40,000 fibers, one after the other too many for the kernel's default of 65,530 mappings, while no GC runs by itself.
  def test_stacks_of_ended_fibers_are_used_again
    heddle_only("it is about fibers")
    GC.disable
    4.times do
      reactor do
        reader, writer = pipe
        jobs = Array.new(10_000) { go { reader.wait_readable } }
        settle
        writer.write("x")

        assert_equal([reader], jobs.map(&:value).uniq)
      end
    end
  ensure
    GC.enable
    GC.start
  end

  # More fibers at the same time than there can be: an error that can be rescued, and nothing hangs.
  once def test_too_many_at_once
    heddle_only("it is about fibers")
    out = assert_script(<<~RUBY, env: { "HEDDLE_BACKEND" => backend })
      ended = 0
      begin
        Heddle.run do
          200_000.times do
            Heddle.spawn do
              sleep
            ensure
              ended += 1
            end
          end
        end
      rescue FiberError, NoMemoryError => e
        puts e.class, ended > 1000
        puts e.message.match?(/no stack .*sysctl -w vm.max_map_count=\\d+.* limit:/) || e.is_a?(NoMemoryError)
      end
      puts Heddle.run { Heddle.spawn { :works }.value }
    RUBY

    assert_match(/\A(FiberError|NoMemoryError)\ntrue\ntrue\nworks\n\z/, out)
  end

  # To find out each time that there is no stack would take minutes.
  once def test_who_goes_on_when_there_are_too_many
    heddle_only("it is about fibers")
    out = assert_script(<<~RUBY, env: { "HEDDLE_BACKEND" => backend })
      refused = 0
      Heddle.run do
        tasks = Array.new(40_000) do
          Heddle.spawn { sleep }
        rescue FiberError
          refused += 1
          nil
        end
        tasks.each { |task| task&.cancel }
      end
      puts refused < 40_000
    RUBY

    assert_equal("true\n", out)
  end
end
