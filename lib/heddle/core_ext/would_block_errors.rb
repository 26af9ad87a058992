# frozen_string_literal: true

# The exceptions of Ruby's own *_nonblock methods, with their messages. They are cheap, see would_block_errors.c.
{
  IO::EAGAINWaitReadable => ["read would block", "recvfrom(2) would block", "recvmsg(2) would block",
                             "accept(2) would block"],
  IO::EAGAINWaitWritable => ["write would block", "sendmsg(2) would block"],
  IO::EINPROGRESSWaitWritable => ["connect(2) would block"]
}.each { |error, messages| Heddle::CoreExt.cheapen(error, messages.map(&:b)) }
