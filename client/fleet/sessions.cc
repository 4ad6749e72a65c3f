#include "client/fleet/sessions.h"

namespace txl::fleet {

Sessions::Sessions(const TurnMix* mix, bool shared_images,
                   bench::Random* random)
    : mix_(mix),
      shared_images_(shared_images),
      random_(random),
      ranks_(mix->sessions, mix->zipf_exponent) {}

std::optional<uint64_t> Sessions::Take() {
  constexpr int kDraws = 100;
  for (int i = 0; i < kDraws; ++i) {
    const auto rank = static_cast<uint64_t>(ranks_.Draw(*random_));
    const auto [place, is_new] = sessions_.try_emplace(rank);
    Session& session = place->second;
    if (is_new) {
      session.tokens = mix_->session_tokens.DrawCount(*random_);
      if (shared_images_) session.image_tokens = session.tokens;
    }
    if (session.in_use) continue;
    session.in_use = true;
    return rank;
  }
  return std::nullopt;
}

}  // namespace txl::fleet
