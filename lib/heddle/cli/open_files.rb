# frozen_string_literal: true

module Heddle
  module CLI
    # Handles the limit of open files. Shells often give 1,024 where the system allows far more.
    #
    # @private
    module OpenFiles
      module_function

      # Raises the soft limit to the hard one, for this process and the processes that it starts.
      # @return [void]
      def raise_limit
        _, hard = Process.getrlimit(:NOFILE)
        Process.setrlimit(:NOFILE, hard, hard)
      rescue Errno::EPERM, Errno::EINVAL
        nil # some systems have a lower limit of their own: the old limit stays
      end

      # @return [Integer] how many files a process may have open
      def limit
        Process.getrlimit(:NOFILE).first
      end
    end
  end
end
