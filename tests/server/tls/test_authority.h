#pragma once

// Certificates of a test's own, made with OpenSSL while it runs.

#include <openssl/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/tls/tls_credentials.h"

namespace txl {

struct TestCertificate {
  std::string certificate;  // PEM
  std::string key;          // PEM, of a curve P-256
};

struct TestSubject {
  std::string common_name;
  // Of OpenSSL's configuration: "IP:127.0.0.1,URI:spiffe://a"; empty: none.
  std::string alternative_names;
  absl::Duration valid_for = absl::Hours(1);  // from an hour ago on
};

// Of a list of revocations.
struct TestList {
  absl::Duration begins_in = -absl::Hours(1);
  absl::Duration ends_in = absl::Hours(1);  // InfiniteDuration: says no end
  bool part = false;  // has a critical extension: one issuing point's alone
};

class TestAuthority {
 public:
  explicit TestAuthority(const std::string& name);

  const std::string& certificate() const { return root_.certificate; }
  TestCertificate Issue(const TestSubject& subject) const;
  // As PEM: these are revoked.
  std::string Revoke(const std::vector<TestCertificate>& certificates,
                     const TestList& list = {}) const;
  // A server's of 127.0.0.1.
  TestCertificate IssueServer(const std::string& name = "server") const {
    return Issue({name, "IP:127.0.0.1"});
  }

 private:
  TestCertificate root_;
};

// A folder with the files that --tls-cert, --tls-key, --tls-client-ca and
// --tls-crl name; the last two only where they are written.
class TestFiles {
 public:
  explicit TestFiles(const TestCertificate& server,
                     const std::string& client_ca = "");
  ~TestFiles();

  // Both of a pair, or one of them alone.
  void Write(const TestCertificate& server);
  void WriteCertificate(const std::string& pem);
  void WriteKey(const std::string& pem);
  void WriteRevoked(const std::string& pem);

  const TlsFiles& files() const { return files_; }

 private:
  std::string folder_;
  TlsFiles files_;
};

}  // namespace txl
