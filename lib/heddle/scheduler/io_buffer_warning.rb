# frozen_string_literal: true

# Ruby warns at the first IO::Buffer of a process, also when it makes that itself to call io_read. It is made here, in
# silence.
begin
  experimental = Warning[:experimental]
  Warning[:experimental] = false
  IO::Buffer.new(1).free
ensure
  Warning[:experimental] = experimental
end
