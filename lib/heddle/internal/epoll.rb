# frozen_string_literal: true

module Heddle
  # Sets of sockets that are watched without a fiber for each, in C: see Server::IdleConnections.
  module Epoll
  end
  private_constant :Epoll
  private_constant :Epoll
end
