# frozen_string_literal: true

# Mutex#sleep and ConditionVariable#wait return nil when their timeout ends them; Ruby forgets that for fibers.
Thread::Mutex.prepend(Heddle::CoreExt::MutexSleep)
Thread::ConditionVariable.prepend(Heddle::CoreExt::ConditionWait)
