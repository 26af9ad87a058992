# frozen_string_literal: true

# TCPSocket.new("localhost", "http"): with a scheduler Ruby knows only numbers of ports.
Addrinfo.singleton_class.prepend(Heddle::CoreExt::ServiceNames::ForAddrinfo)
Socket.singleton_class.prepend(Heddle::CoreExt::ServiceNames::ForSocket)
TCPSocket.prepend(Heddle::CoreExt::ServiceNames::ForTCPSocket)
TCPServer.prepend(Heddle::CoreExt::ServiceNames::ForTCPServer)
UDPSocket.prepend(Heddle::CoreExt::ServiceNames::ForUDPSocket)
