# frozen_string_literal: true

Bench.peer("threads", share: 0.25) { Bench::ThreadAdapter.new }
