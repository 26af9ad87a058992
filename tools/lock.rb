# frozen_string_literal: true

require "fileutils"
require_relative "support"

module Tools
  # One set-up at a time. The kernel frees the lock when its holder dies, however it dies.
  module Lock
    module_function

    # Runs the block while holding the lock file.
    def hold(path, console:)
      FileUtils.mkdir_p(File.dirname(path))
      File.open(path, File::RDWR | File::CREAT, 0o644) do |file|
        unless file.flock(File::LOCK_EX | File::LOCK_NB)
          console.step("waiting for another run (process #{file.read.strip})") { file.flock(File::LOCK_EX) }
        end
        file.rewind
        file.truncate(0)
        file.write("#{$PROCESS_ID}\n")
        file.flush
        yield
      end
    end
  end
end
