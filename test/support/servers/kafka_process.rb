# frozen_string_literal: true

# The process of Servers::Kafka. It says its port.

require "rdkafka"

$stdout.sync = true # before the first line of rdkafka's log: Ruby leaves later ones in the buffer with it
admin = Rdkafka::Config.new("test.mock.num.brokers": 1, "bootstrap.servers": "none").admin
puts "port #{admin.metadata(nil).brokers.first[:broker_port]}"
sleep
