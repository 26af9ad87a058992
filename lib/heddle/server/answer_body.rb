# frozen_string_literal: true

require "protocol/http/body/completable"
require "protocol/rack"

module Heddle
  class Server
    # How the body of an answer is read: the application's own each or call runs in the task of the request. (A read
    # runs it in another fiber, which learns of no error, and is not waited for.)
    #
    # @private
    module AnswerBody
      class << self
        # @param body [Protocol::HTTP::Body::Readable]
        # @return [Protocol::HTTP::Body::Readable] without what only waits for its close
        def made(body) = body.is_a?(::Protocol::HTTP::Body::Completable) ? body.body : body

        # @param body [Protocol::HTTP::Body::Readable]
        # @yieldparam chunk [String]
        # @return [void]
        def each(body, &)
          body = made(body)
          return body.each(&) if body.is_a?(::Protocol::Rack::Body::Enumerable)

          while (chunk = body.read)
            yield chunk
          end
        end
      end
    end
    private_constant :AnswerBody
  end
end
