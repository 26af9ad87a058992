# frozen_string_literal: true

# TCPSocket.new("localhost", "http"): with a scheduler Ruby knows only numbers of ports.
Heddle::CoreExt.replace(Addrinfo.singleton_class, Heddle::CoreExt::ServiceNames::ForAddrinfo)
Heddle::CoreExt.replace(Socket.singleton_class, Heddle::CoreExt::ServiceNames::ForSocket)
Heddle::CoreExt.replace(TCPSocket, Heddle::CoreExt::ServiceNames::ForTCPSocket)
Heddle::CoreExt.replace(TCPServer, Heddle::CoreExt::ServiceNames::ForTCPServer)
Heddle::CoreExt.replace(UDPSocket, Heddle::CoreExt::ServiceNames::ForUDPSocket)
