#include "model/text/byte_vocabulary.h"

#include "model/base/status_macros.h"
#include "model/text/utf8.h"

namespace txl {
namespace {

class ByteDetokenizer final : public Detokenizer {
 public:
  std::string Add(int32_t id) override {
    std::string out;
    assembler_.Add(static_cast<char>(id), out);
    return out;
  }

  std::string Flush() override {
    std::string out;
    assembler_.Flush(out);
    return out;
  }

  std::unique_ptr<Detokenizer> Clone() const override {
    return std::make_unique<ByteDetokenizer>(*this);
  }

 private:
  Utf8Assembler assembler_;
};

}  // namespace

absl::StatusOr<std::vector<int32_t>> ByteVocabulary::Encode(
    absl::string_view text, int64_t max_tokens) const {
  TokenList ids(max_tokens);
  for (const char byte : text) {
    TXL_RETURN_IF_ERROR(ids.Add(static_cast<unsigned char>(byte)));
  }
  return ids.Take();
}

std::string ByteVocabulary::TokenBytes(int32_t id) const {
  return std::string(1, static_cast<char>(id));
}

std::unique_ptr<Detokenizer> ByteVocabulary::NewDetokenizer() const {
  return std::make_unique<ByteDetokenizer>();
}

}  // namespace txl
