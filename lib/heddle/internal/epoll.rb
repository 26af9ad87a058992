# frozen_string_literal: true

module Heddle
  # Sets of sockets that nobody waits for with a fiber, in C: see Server::IdleConnections.
  module Epoll
  end
  private_constant :Epoll
  private_constant :Epoll
end
