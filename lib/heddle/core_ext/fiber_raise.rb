# frozen_string_literal: true

# Fiber#raise and Fiber#kill into a fiber that Heddle parked: the caller goes on afterwards (plain Ruby loses it).
Fiber.prepend(Heddle::CoreExt::FiberRaise)
