# frozen_string_literal: true

# Thread.handle_interrupt holds back the timeouts of a fiber (Timeout.timeout), as it does those of a thread.
Thread.singleton_class.prepend(Heddle::CoreExt::HandleInterrupt)
