#pragma once

// What files of TLS share: owners of OpenSSL's objects, readers of text, times.

#include <openssl/asn1.h>
#include <openssl/bio.h>

#include <ctime>
#include <memory>
#include <string>

#include "absl/time/time.h"

namespace txl {

// A deleter for std::unique_ptr of what OpenSSL frees by function `Free`.
template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free>>;

// Reads `text`, which has to outlive it.
inline Bio BioOf(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// One that cannot be read has passed.
inline absl::Time TimeOf(const ASN1_TIME* time) {
  std::tm parts = {};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return absl::InfinitePast();
  return absl::FromTimeT(timegm(&parts));
}

}  // namespace txl
