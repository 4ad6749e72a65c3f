#pragma once

// Kinds of tokens for vocabularies of any size.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "model/sampling/token_kinds.h"

namespace txl {

// Ids n, n + 5, n + 10, ... are of kind n; those of n = 4 are of none. Behind
// kind 2 stands anything, behind the others some kinds, at temperatures of
// their own. Kinds without an id are left out.
inline std::vector<TokenKind> SomeKinds(int64_t vocab_size) {
  std::vector<TokenKind> kinds = {{"A", {}, {{"A", "B", "D"}}, 1.5},
                                  {"B", {}, {{"A", "C"}}, 1},
                                  {"C", {}, std::nullopt, 0.6},
                                  {"D", {}, {{"A", "B", "C"}}, 0.8}};
  for (int32_t id = 0; id < vocab_size; ++id) {
    if (id % 5 < 4) kinds[id % 5].tokens.emplace_back(id, id);
  }
  kinds.resize(std::min<size_t>(kinds.size(), static_cast<size_t>(vocab_size)));
  for (TokenKind& kind : kinds) {
    if (!kind.next.has_value()) continue;
    std::erase_if(*kind.next, [&](const std::string& name) {
      return std::none_of(kinds.begin(), kinds.end(),
                          [&](const TokenKind& k) { return k.name == name; });
    });
  }
  return kinds;
}

inline std::shared_ptr<const TokenKinds> TableOf(std::vector<TokenKind> kinds,
                                                 int64_t vocab_size) {
  absl::StatusOr<TokenKinds> made =
      TokenKinds::Make(std::move(kinds), vocab_size);
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? std::make_shared<const TokenKinds>(*std::move(made))
                   : nullptr;
}

inline std::shared_ptr<const TokenKinds> SomeTable(int64_t vocab_size) {
  return TableOf(SomeKinds(vocab_size), vocab_size);
}

}  // namespace txl
