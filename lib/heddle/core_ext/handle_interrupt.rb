# frozen_string_literal: true

# Thread.handle_interrupt holds back what strikes a fiber, as it does for a thread: Timeout.timeout and Task#cancel.
Heddle::CoreExt.replace(Thread.singleton_class, Heddle::CoreExt::HandleInterrupt, visibility: :public)
