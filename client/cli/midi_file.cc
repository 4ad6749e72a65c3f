#include "client/cli/midi_file.h"

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/output.h"

namespace txl::cli {
namespace {

// "Note On_109 (2), note without an end (1)"
std::string ListOf(const v1::TokenizeResponse& response) {
  return absl::StrJoin(
      response.left_out(), ", ", [](std::string* out, const v1::LeftOut& part) {
        absl::StrAppend(out, part.what(), " (", part.count(), ")");
      });
}

}  // namespace

absl::StatusOr<v1::TokenizeResponse> TokenizeMidi(Client& client,
                                                  const std::string& path,
                                                  const CallOptions& options) {
  absl::StatusOr<std::string> file = ReadBytes(path);
  if (!file.ok()) return file.status();
  const auto model = client.GetModel(options);
  if (!model.ok()) return model.status();
  // gRPC refuses a message that is much too large without a word about it.
  const int64_t most = model->limits().max_prompt_bytes();
  if (static_cast<int64_t>(file->size()) > most) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", file->size(), " bytes, at most ", most));
  }
  v1::TokenizeRequest request;
  request.set_midi(*std::move(file));
  auto response = client.Tokenize(request, options);
  if (!response.ok()) return response;
  if (response->left_out_size() > 0) {
    std::fprintf(stderr, "txl: %s: left out: %s\n", path.c_str(),
                 ListOf(*response).c_str());
  }
  if (response->token_ids().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": holds no token"));
  }
  return response;
}

}  // namespace txl::cli
