#pragma once

// What a connection's socket is set to, and whose it is.

#include <boost/asio/ip/tcp.hpp>
#include <string>

namespace txl {

// Sends at once, keeps little of what is not read, and gives up on a client
// that acknowledges nothing.
void SetTransport(boost::asio::ip::tcp::socket& socket);

// "http:HOST:PORT" with the client's port.
std::string PeerOf(const boost::asio::ip::tcp::socket& socket,
                   const std::string& host);

// The address that the connection came in on, "" of one that has ended.
std::string LocalAddressOf(const boost::asio::ip::tcp::socket& socket);

}  // namespace txl
