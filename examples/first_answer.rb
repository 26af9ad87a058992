# frozen_string_literal: true

# Asks three services for the address that this machine has in the Internet, takes the first right answer, and cancels
# the other requests.
#
#   ruby examples/first_answer.rb [--seconds 10] [URL ...]
#
# The URLs are those of services that answer with an IP address and nothing else.

require "heddle"
require "ipaddr"
require "net/http"
require "optparse"

SERVICES = %w[https://api.ipify.org/ https://icanhazip.com/ https://ifconfig.me/ip].freeze

# @raise [Net::ProtocolError, IPAddr::Error, SystemCallError, ...] whatever goes wrong
def ask(service)
  response = Net::HTTP.get_response(URI(service), { "User-Agent" => "heddle-example" })
  response.value # raises an error, unless the status is 200 or so
  IPAddr.new(response.body.strip)
end

seconds = 10
usage = OptionParser.new("usage: ruby first_answer.rb [--seconds 10] [URL ...]") do |options|
  options.on("--seconds SECONDS", Float) { |value| seconds = value }
end
begin
  usage.parse!
rescue OptionParser::ParseError => e
  abort "#{e.message}\n#{usage.banner}"
end
services = ARGV.empty? ? SERVICES : ARGV
begin
  service, address = Heddle.timeout(seconds) do
    Heddle.any(*services.map { |service| -> { [service, ask(service)] } })
  end
  puts "#{address} (says #{service})"
rescue Heddle::NoneSucceeded => e
  services.zip(e.errors) { |service, error| warn "#{service}: #{error.message} (#{error.class})" }
  abort "no service has answered"
rescue Heddle::TimeoutError => e
  abort e.message
end
