# frozen_string_literal: true

module Heddle
  module CoreExt
    # What Ruby's own *_nonblock methods raise, with the messages that they give.
    {
      IO::EAGAINWaitReadable => ["read would block", "recvfrom(2) would block", "recvmsg(2) would block",
                                 "accept(2) would block"],
      IO::EAGAINWaitWritable => ["write would block", "sendmsg(2) would block"],
      IO::EINPROGRESSWaitWritable => ["connect(2) would block"]
    }.each { |error, messages| cheapen(error, messages.map(&:b)) }
  end
end
