#pragma once

// Text <-> token ids, and the way back as a stream.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace txl {

// How a text is encoded, and its ids while they are found.

inline constexpr int64_t kNoTokenLimit = std::numeric_limits<int64_t>::max();

struct EncodeOptions {
  int64_t max_tokens = kNoTokenLimit;  // >= 0
  // What becomes of pieces of text without a symbol, by the first of these that
  // is set: they are left out; they are left out and counted; each becomes this
  // id of the vocabulary. Else each becomes the unknown symbol; where the
  // vocabulary has none, the text is refused.
  bool skip_unknown = false;
  std::map<std::string, int64_t>* unknown_counts = nullptr;
  std::optional<int32_t> unknown_id = std::nullopt;
};

class TokenList {
 public:
  explicit TokenList(const EncodeOptions& options) : options_(options) {}

  // OutOfRange ("more than N tokens") when the list is full.
  absl::Status Add(int32_t id) {
    if (ABSL_PREDICT_FALSE(size() >= options_.max_tokens)) return Full();
    ids_.push_back(id);
    return absl::OkStatus();
  }

  // Does what the options say of a piece without a symbol. Absent: they say
  // nothing.
  std::optional<absl::Status> AddUnknown(absl::string_view piece);

  int64_t size() const { return static_cast<int64_t>(ids_.size()); }
  std::vector<int32_t> Take() { return std::exchange(ids_, {}); }

 private:
  absl::Status Full() const;

  const EncodeOptions options_;
  std::vector<int32_t> ids_;
};

// Turns ids back into text as they arrive. What Add returns is always valid
// UTF-8 and is final: an incomplete character is held. One per session;
// not thread-safe.
class Detokenizer {
 public:
  // `vocabulary_size`: the ids that have a text are below it.
  explicit Detokenizer(int64_t vocabulary_size) : size_(vocabulary_size) {}
  virtual ~Detokenizer() = default;

  // Text that became certain with `id` (possibly empty). An id outside the
  // vocabulary changes nothing and has no text.
  std::string Add(int32_t id) {
    return id >= 0 && id < size_ ? AddKnown(id) : std::string();
  }

  // The held rest, an incomplete character as U+FFFD; the state is then that
  // of a character border (a later Add starts a new character); a word after a
  // word still gets its space.
  virtual std::string Flush() = 0;

  virtual std::unique_ptr<Detokenizer> Clone() const = 0;

  // All that Add and Flush have made of the detokenizer, to be kept elsewhere:
  // a few bytes, empty for a fresh one. Equal states go on equally.
  virtual std::string State() const = 0;

  // Goes on as the detokenizer of the same vocabulary that gave `state`.
  // False: State never makes these bytes; only Add and Flush may then follow,
  // whose text means nothing.
  virtual bool SetState(absl::string_view state) = 0;

 private:
  // Implements Add. REQUIRES: 0 <= id < size of the vocabulary.
  virtual std::string AddKnown(int32_t id) = 0;

  int64_t size_;
};

// Thread-safe; const after construction.
class Vocabulary {
 public:
  virtual ~Vocabulary() = default;

  virtual int64_t size() const = 0;
  // The name that tokenizer.json has for it, see vocabulary_loader.h.
  virtual absl::string_view kind() const = 0;

  // Whether there is an unknown symbol, for pieces of text without a symbol of
  // their own.
  virtual bool has_unknown() const { return false; }

  // Ids of `text` (valid UTF-8), each call on its own. Takes time in proportion
  // to the bytes of the text: at most five times that of a plain text of as
  // many bytes, whatever it is. Ends as soon as it is certain that there are
  // more than max_tokens ids. Errors: OutOfRange ("more than N tokens");
  // InvalidArgument naming the first piece of text that has no symbol when
  // there is no unknown symbol and such pieces are not skipped.
  virtual absl::StatusOr<std::vector<int32_t>> Encode(
      absl::string_view text, const EncodeOptions& options) const = 0;
  absl::StatusOr<std::vector<int32_t>> Encode(absl::string_view text) const {
    return Encode(text, EncodeOptions());
  }

  // Ids of a whole text file, as the original training code reads one: where
  // that cuts text into lines, the last line counts as ended. Else as Encode.
  // For evaluation; the number of ids is then the original one.
  virtual absl::StatusOr<std::vector<int32_t>> EncodeDocument(
      absl::string_view text, const EncodeOptions& options) const {
    return Encode(text, options);
  }
  absl::StatusOr<std::vector<int32_t>> EncodeDocument(
      absl::string_view text) const {
    return EncodeDocument(text, EncodeOptions());
  }

  // Exact bytes that the token stands for (a symbol's own spelling); none for
  // an id outside the vocabulary.
  std::string TokenBytes(int32_t id) const {
    return Has(id) ? BytesOf(id) : std::string();
  }

  virtual std::unique_ptr<Detokenizer> NewDetokenizer() const = 0;

  // A detokenizer that goes on as the one of this vocabulary that gave `state`.
  // Errors: InvalidArgument for bytes that are not such a state.
  absl::StatusOr<std::unique_ptr<Detokenizer>> RestoreDetokenizer(
      absl::string_view state) const;

  // All ids through a fresh detokenizer and Flush; in time in proportion to
  // their number and to the length of what comes out. Errors: OutOfRange naming
  // the first id outside the vocabulary.
  absl::StatusOr<std::string> Decode(absl::Span<const int32_t> ids) const;

  bool Has(int32_t id) const { return id >= 0 && id < size(); }

 private:
  // Implements TokenBytes. REQUIRES: Has(id).
  virtual std::string BytesOf(int32_t id) const = 0;
};

}  // namespace txl
