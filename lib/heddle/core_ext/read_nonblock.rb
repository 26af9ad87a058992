# frozen_string_literal: true

# IO#read_nonblock and ARGF.read_nonblock never wait, though Ruby calls the same hook for them as for a blocking read.
IO.prepend(Heddle::CoreExt::ReadNonblock)
ARGF.class.prepend(Heddle::CoreExt::ReadNonblock)
