#include "server/tls_flags.h"

namespace txl {

void AddTlsFlags(TlsFiles* files, bool* insecure, FlagTable* table) {
  table->Text("tls-cert", &files->certificate,
              "PEM file of the server's certificate and those that signed it: "
              "gRPC and HTTP take TLS alone, a Unix socket never does; empty: "
              "no TLS. The files are read again when they change");
  table->Text("tls-key", &files->key,
              "PEM file of its key, without a passphrase and not for everybody "
              "to read");
  table->Text("tls-client-ca", &files->client_ca,
              "PEM file of who signs clients' certificates: every client of "
              "gRPC and HTTP has to show one; empty: none has to");
  table->Text("tls-crl", &files->revoked,
              "PEM file of which of those are revoked: a list of each "
              "authority that has one; empty: none is. Read again when it "
              "changes");
  table->Bool(
      "insecure", insecure,
      "Let gRPC and HTTP listen beyond loopback without TLS: whoever is "
      "on the way reads and changes everything");
}

}  // namespace txl
