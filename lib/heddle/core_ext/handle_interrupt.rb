# frozen_string_literal: true

# Thread.handle_interrupt holds back what strikes a fiber, as it does for a thread: Timeout.timeout and Task#cancel.
Thread.singleton_class.prepend(Heddle::CoreExt::HandleInterrupt)
