# frozen_string_literal: true

# Ruby 3.3 and 3.4 flush without asking the scheduler: a full pipe in blocking mode would hold up every fiber.
Heddle::CoreExt.replace(IO, Heddle::CoreExt::Flush)
