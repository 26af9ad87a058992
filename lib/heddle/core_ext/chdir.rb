# frozen_string_literal: true

module Heddle
  using Internal

  module CoreExt
    # The directory is the process's. So Ruby refuses to change it in a thread while a block of another thread has
    # changed it; and what it refuses to threads is refused to tasks.
    module Chdir
      # For a path.
      module Path
        def chdir(...) = Chdir.change(block_given?) { __heddle_chdir(...) }
      end

      # For the number of a descriptor.
      module Descriptor
        def fchdir(...) = Chdir.change(block_given?) { __heddle_fchdir(...) }
      end

      class << self
        # @param lasts [Boolean] is it changed back after a block?
        def change(lasts)
          scheduler = Scheduler.current or return yield
          root = scheduler.root
          changed_by = scheduler.directory_changed_by
          raise "conflicting chdir during another chdir block" if changed_by && !changed_by.equal?(root)
          return yield if changed_by || !lasts

          begin
            scheduler.directory_changed_by = root
            yield
          ensure
            scheduler.directory_changed_by = nil
          end
        end
      end
    end
  end
end
