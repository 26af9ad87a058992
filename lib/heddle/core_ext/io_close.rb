# frozen_string_literal: true

# Closing or reopening an IO wakes exactly the fibers that wait on it, with IOError, before the descriptor goes away.
# Ruby before 4.0 leaves them parked for ever; no Ruby wakes those in IO.select (Bug #19039).
Heddle::CoreExt.replace(IO, Heddle::CoreExt::IOClose)
Heddle::CoreExt.replace(IO, Heddle::CoreExt::IOHalfClose)
Heddle::CoreExt.replace(BasicSocket, Heddle::CoreExt::IOHalfClose)
