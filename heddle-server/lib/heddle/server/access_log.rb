# frozen_string_literal: true

module Heddle
  class Server
    # Writes a line for each request, in the Common Log Format. The size in the line is the size of the answer's body.
    # The seconds that the request took stand at its end.
    #
    # @private
    class AccessLog
      # @param io [IO]
      def initialize(io)
        @io = io
        @io.sync = true # a worker that is killed loses no line
      end

      # @param answer [Answer]
      # @param seconds [Float]
      def add(answer, seconds)
        request = answer.request
        @io.write(format("%<client>s - - [%<time>s] \"%<method>s %<path>s %<version>s\" %<status>s %<size>s " \
                         "%<took>.4f\n",
                         client: request.peer&.ip_address || "-", time: Time.now.strftime("%d/%b/%Y:%H:%M:%S %z"),
                         method: request.method, path: request.path.dump[1..-2], version: request.version,
                         status: answer.status || "-", size: answer.sent, took: seconds))
      rescue IOError, SystemCallError
        nil # a request does not fail because of its line
      end
    end
  end
end
