# frozen_string_literal: true

require_relative "../adapters"

module Heddle
  Adapters.load_library("grpc", ">= 1.60", "< 2")

  module Adapters
    # The core of grpc waits in C, without Ruby's lock. In tasks each step of a call waits on another thread (a unary
    # call has one step; a stream has one step for each message). A stream in both directions has threads of its own
    # already.
    #
    # A cancel or a timeout of the task cancels the call, as GRPC::Core::Call#cancel does: the server sees it, and the
    # channel can be used afterwards.
    #
    # @private
    module GRPC
      # Takes the place of a method of GRPC::Core::Call.
      module Call
        def run_batch(*)
          return super unless Adapters.task?

          Heddle.offload(stop: -> { cancel }, lasting: true) { super }
        end
      end

      Adapters.prepend_to("grpc", ::GRPC::Core::Call, Call)
    end
  end
end
