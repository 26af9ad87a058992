# frozen_string_literal: true

# Mutex#sleep and ConditionVariable#wait return nil when their timeout ends them; Ruby forgets that for fibers.
Heddle::CoreExt.replace(Thread::Mutex, Heddle::CoreExt::MutexSleep)
Heddle::CoreExt.replace(Thread::ConditionVariable, Heddle::CoreExt::ConditionWait)
