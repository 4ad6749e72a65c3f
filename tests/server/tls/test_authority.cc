#include "tests/server/tls/test_authority.h"

#include <gtest/gtest.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "absl/time/clock.h"

namespace txl {
namespace {

template <typename Write>
std::string Pem(Write write) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()),
                                                      &BIO_free);
  EXPECT_EQ(write(bio.get()), 1);
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &bytes);
  return std::string(bytes, static_cast<size_t>(size));
}

std::shared_ptr<X509> ParseCertificate(const std::string& pem) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free);
  return {PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), &X509_free};
}

std::shared_ptr<EVP_PKEY> ParseKey(const std::string& pem) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free);
  return {PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr),
          &EVP_PKEY_free};
}

void AddExtension(X509* certificate, int name, const std::string& value) {
  X509_EXTENSION* extension =
      X509V3_EXT_conf_nid(nullptr, nullptr, name, value.c_str());
  ASSERT_NE(extension, nullptr) << value;
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

// Signed by `issuer`; by itself where there is none.
TestCertificate Make(const TestSubject& subject,
                     const TestCertificate* issuer) {
  static int64_t serial = 1;
  const std::shared_ptr<EVP_PKEY> key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
  const std::shared_ptr<X509> made(X509_new(), &X509_free);
  X509_set_version(made.get(), X509_VERSION_3);
  ASN1_INTEGER_set_int64(X509_get_serialNumber(made.get()), ++serial);
  X509_set_pubkey(made.get(), key.get());
  const absl::Time from = absl::Now() - absl::Hours(1);
  ASN1_TIME_set(X509_getm_notBefore(made.get()), absl::ToTimeT(from));
  ASN1_TIME_set(X509_getm_notAfter(made.get()),
                absl::ToTimeT(absl::Now() + subject.valid_for));
  X509_NAME_add_entry_by_txt(
      X509_get_subject_name(made.get()), "CN", MBSTRING_UTF8,
      reinterpret_cast<const unsigned char*>(subject.common_name.data()),
      static_cast<int>(subject.common_name.size()), -1, 0);
  const auto parent =
      issuer == nullptr ? made : ParseCertificate(issuer->certificate);
  X509_set_issuer_name(made.get(), X509_get_subject_name(parent.get()));
  AddExtension(made.get(), NID_basic_constraints,
               issuer == nullptr ? "critical,CA:TRUE" : "CA:FALSE");
  if (!subject.alternative_names.empty()) {
    AddExtension(made.get(), NID_subject_alt_name, subject.alternative_names);
  }
  const auto signer = issuer == nullptr ? key : ParseKey(issuer->key);
  EXPECT_GT(X509_sign(made.get(), signer.get(), EVP_sha256()), 0);
  return {Pem([&](BIO* to) { return PEM_write_bio_X509(to, made.get()); }),
          Pem([&](BIO* to) {
            return PEM_write_bio_PrivateKey(to, key.get(), nullptr, nullptr, 0,
                                            nullptr, nullptr);
          })};
}

std::shared_ptr<ASN1_TIME> TimeIn(absl::Duration in) {
  return {ASN1_TIME_set(nullptr, absl::ToTimeT(absl::Now() + in)),
          &ASN1_TIME_free};
}

// As those do that renew certificates: whole, or not at all.
void WriteFile(const std::string& path, const std::string& text) {
  std::ofstream(path + ".new") << text;
  chmod((path + ".new").c_str(), 0600);
  std::filesystem::rename(path + ".new", path);
}

}  // namespace

TestAuthority::TestAuthority(const std::string& name)
    : root_(Make({name, "", absl::Hours(2)}, nullptr)) {}

TestCertificate TestAuthority::Issue(const TestSubject& subject) const {
  return Make(subject, &root_);
}

std::string TestAuthority::Revoke(
    const std::vector<TestCertificate>& certificates,
    const TestList& list) const {
  const std::shared_ptr<X509_CRL> made(X509_CRL_new(), &X509_CRL_free);
  X509_CRL_set_version(made.get(), X509_CRL_VERSION_2);
  X509_CRL_set_issuer_name(
      made.get(),
      X509_get_subject_name(ParseCertificate(root_.certificate).get()));
  X509_CRL_set1_lastUpdate(made.get(), TimeIn(list.begins_in).get());
  if (list.ends_in != absl::InfiniteDuration()) {
    X509_CRL_set1_nextUpdate(made.get(), TimeIn(list.ends_in).get());
  }
  for (const TestCertificate& one : certificates) {
    const auto certificate = ParseCertificate(one.certificate);
    X509_REVOKED* entry = X509_REVOKED_new();
    X509_REVOKED_set_serialNumber(entry,
                                  X509_get_serialNumber(certificate.get()));
    X509_REVOKED_set_revocationDate(entry, TimeIn(list.begins_in).get());
    X509_CRL_add0_revoked(made.get(), entry);
  }
  if (list.part) {
    X509_EXTENSION* extension =
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_issuing_distribution_point,
                            "critical,onlyuser:TRUE");
    EXPECT_NE(extension, nullptr);
    X509_CRL_add_ext(made.get(), extension, -1);
    X509_EXTENSION_free(extension);
  }
  X509_CRL_sort(made.get());
  EXPECT_GT(X509_CRL_sign(made.get(), ParseKey(root_.key).get(), EVP_sha256()),
            0);
  return Pem([&](BIO* to) { return PEM_write_bio_X509_CRL(to, made.get()); });
}

TestFiles::TestFiles(const TestCertificate& server,
                     const std::string& client_ca) {
  std::string folder = testing::TempDir() + "/txl-tls-XXXXXX";
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  folder_ = folder;
  files_ = {folder + "/tls.crt", folder + "/tls.key", ""};
  Write(server);
  if (client_ca.empty()) return;
  files_.client_ca = folder + "/ca.crt";
  WriteFile(files_.client_ca, client_ca);
}

TestFiles::~TestFiles() { std::filesystem::remove_all(folder_); }

void TestFiles::Write(const TestCertificate& server) {
  WriteCertificate(server.certificate);
  WriteKey(server.key);
}

void TestFiles::WriteCertificate(const std::string& pem) {
  WriteFile(files_.certificate, pem);
}

void TestFiles::WriteKey(const std::string& pem) { WriteFile(files_.key, pem); }

void TestFiles::WriteRevoked(const std::string& pem) {
  files_.revoked = folder_ + "/clients.crl";
  WriteFile(files_.revoked, pem);
}

}  // namespace txl
