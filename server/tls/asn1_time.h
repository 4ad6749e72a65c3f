#pragma once

// Times of certificates and lists.

#include <openssl/asn1.h>

#include <ctime>

#include "absl/time/time.h"

namespace txl {

// One that cannot be read has passed.
inline absl::Time TimeOf(const ASN1_TIME* time) {
  std::tm parts = {};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return absl::InfinitePast();
  return absl::FromTimeT(timegm(&parts));
}

}  // namespace txl
