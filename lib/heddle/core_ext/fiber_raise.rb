# frozen_string_literal: true

# Fiber#raise and Fiber#kill into a fiber that Heddle parked: the caller goes on afterwards (plain Ruby loses it).
Heddle::CoreExt.replace(Fiber, Heddle::CoreExt::FiberRaise)
