# frozen_string_literal: true

# What is sent to a thread that runs a scheduler reaches its Heddle.run, and Thread#wakeup ends the sleep of the main
# block. Thread.stop stops the task that calls it, and not the whole thread.
Heddle::CoreExt.replace(Thread, Heddle::CoreExt::ThreadCalls)
Heddle::CoreExt.replace(Thread.singleton_class, Heddle::CoreExt::ThreadStop)
