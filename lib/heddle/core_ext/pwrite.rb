# frozen_string_literal: true

# Ruby 3.3 and 3.4 call the hook of IO#pwrite without the GVL: memory corruption under any scheduler.
Heddle::CoreExt.replace(IO, Heddle::CoreExt::Pwrite)
