#include "server/store/journal_entry.h"

namespace txl {
namespace {

const std::string& IdOf(const CreateEntry& entry) {
  return entry.head.session_id;
}
const std::string& IdOf(const ForkEntry& entry) {
  return entry.child.session_id;
}
template <typename Entry>
const std::string& IdOf(const Entry& entry) {
  return entry.session_id;
}

}  // namespace

const std::string& SessionOf(const JournalEntry& entry) {
  return std::visit(
      [](const auto& one) -> const std::string& { return IdOf(one); }, entry);
}

int64_t TokensOf(const JournalEntry& entry) {
  if (const auto* append = std::get_if<AppendEntry>(&entry)) {
    return static_cast<int64_t>(append->tokens.ids.size());
  }
  if (const auto* end = std::get_if<EndEntry>(&entry)) {
    return static_cast<int64_t>(end->end.tokens.ids.size());
  }
  return 0;
}

bool MakesRoom(const JournalEntry& entry) {
  return std::holds_alternative<RemoveEntry>(entry) ||
         std::holds_alternative<RewindEntry>(entry);
}

}  // namespace txl
