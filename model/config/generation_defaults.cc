#include "model/config/generation_defaults.h"

#include <limits>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/config/json_fields.h"

namespace txl {
namespace {

using nlohmann::json;

const std::vector<std::string>& KnownFields() {
  static const std::vector<std::string> fields = {"start_tokens",
                                                  "end_tokens",
                                                  "max_tokens",
                                                  "stop_texts",
                                                  "chat",
                                                  "temperature",
                                                  "top_k",
                                                  "top_p",
                                                  "min_p",
                                                  "typical_p",
                                                  "repetition_penalty",
                                                  "presence_penalty",
                                                  "frequency_penalty",
                                                  "penalty_window",
                                                  "logit_bias",
                                                  "follow_kinds",
                                                  "seed",
                                                  "min_tokens"};
  return fields;
}

std::vector<int32_t> Ids(JsonFields& in, absl::string_view field,
                         int64_t vocab_size) {
  std::vector<int32_t> ids;
  for (const int64_t id : in.IntList(field, 0, vocab_size - 1)) {
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

std::optional<int32_t> Int32(JsonFields& in, absl::string_view field,
                             int64_t min) {
  const std::optional<int64_t> value =
      in.OptionalInt(field, min, std::numeric_limits<int32_t>::max());
  if (!value.has_value()) return std::nullopt;
  return static_cast<int32_t>(*value);
}

void ReadBias(JsonFields& in, const json& object, int64_t vocab_size,
              SamplingOverrides& sampling) {
  const auto it = object.find("logit_bias");
  if (it == object.end() || it->is_null()) return;
  if (!it->is_object()) {
    in.Fail("logit_bias", "must map token ids to numbers");
    return;
  }
  for (const auto& [name, value] : it->items()) {
    int32_t id = 0;
    // Only the plain spelling, so that no id can stand there twice.
    if (!absl::SimpleAtoi(name, &id) || absl::StrCat(id) != name || id < 0 ||
        id >= vocab_size || !value.is_number()) {
      in.Fail("logit_bias", absl::StrCat("has the bad entry ",
                                         absl::CHexEscape(name.substr(0, 80))));
      return;
    }
    sampling.logit_bias[id] = value.get<double>();
  }
}

SamplingOverrides ReadSampling(JsonFields& in, const json& object,
                               int64_t vocab_size) {
  SamplingOverrides sampling;
  sampling.temperature = in.OptionalNumber("temperature");
  sampling.top_k = in.OptionalInt("top_k", 0, vocab_size);
  sampling.top_p = in.OptionalNumber("top_p");
  sampling.min_p = in.OptionalNumber("min_p");
  sampling.typical_p = in.OptionalNumber("typical_p");
  sampling.repetition_penalty = in.OptionalNumber("repetition_penalty");
  sampling.presence_penalty = in.OptionalNumber("presence_penalty");
  sampling.frequency_penalty = in.OptionalNumber("frequency_penalty");
  sampling.penalty_window = Int32(in, "penalty_window", 0);
  sampling.min_tokens = Int32(in, "min_tokens", 0);
  if (in.Has("follow_kinds")) {
    sampling.follow_kinds = in.Bool("follow_kinds", false);
  }
  sampling.seed = in.OptionalUint64("seed");
  ReadBias(in, object, vocab_size, sampling);
  return sampling;
}

template <typename T>
void Put(json& out, const char* field, const std::optional<T>& value) {
  if (value.has_value()) out[field] = *value;
}

}  // namespace

absl::StatusOr<GenerationDefaults> ParseGenerationDefaults(
    absl::string_view text, absl::string_view origin, int64_t vocab_size) {
  TXL_ASSIGN_OR_RETURN(const json object, ParseJsonObject(text, origin));
  JsonFields in(object, origin);
  in.RefuseUnknown(KnownFields());
  GenerationDefaults defaults;
  defaults.start_tokens = Ids(in, "start_tokens", vocab_size);
  defaults.end_tokens = Ids(in, "end_tokens", vocab_size);
  defaults.max_tokens = Int32(in, "max_tokens", 1);
  defaults.stop_texts = in.StringList("stop_texts");
  defaults.chat = ReadChatFormat(in);
  defaults.sampling = ReadSampling(in, object, vocab_size);
  TXL_RETURN_IF_ERROR(in.status());
  const absl::Status valid = ValidateSamplingParams(
      ApplyOverrides(SamplingParams(), defaults.sampling), vocab_size);
  if (!valid.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ": field ", valid.message()));
  }
  return defaults;
}

std::string GenerationDefaultsToJson(const GenerationDefaults& defaults) {
  json out = json::object();
  if (!defaults.start_tokens.empty()) {
    out["start_tokens"] = defaults.start_tokens;
  }
  if (!defaults.end_tokens.empty()) out["end_tokens"] = defaults.end_tokens;
  Put(out, "max_tokens", defaults.max_tokens);
  if (!defaults.stop_texts.empty()) out["stop_texts"] = defaults.stop_texts;
  if (defaults.chat.has_value()) out["chat"] = ChatFormatToJson(*defaults.chat);
  const SamplingOverrides& sampling = defaults.sampling;
  Put(out, "temperature", sampling.temperature);
  Put(out, "top_k", sampling.top_k);
  Put(out, "top_p", sampling.top_p);
  Put(out, "min_p", sampling.min_p);
  Put(out, "typical_p", sampling.typical_p);
  Put(out, "repetition_penalty", sampling.repetition_penalty);
  Put(out, "presence_penalty", sampling.presence_penalty);
  Put(out, "frequency_penalty", sampling.frequency_penalty);
  Put(out, "penalty_window", sampling.penalty_window);
  Put(out, "follow_kinds", sampling.follow_kinds);
  Put(out, "seed", sampling.seed);
  Put(out, "min_tokens", sampling.min_tokens);
  for (const auto& [id, bias] : sampling.logit_bias) {
    out["logit_bias"][absl::StrCat(id)] = bias;
  }
  return out.dump(2) + "\n";
}

}  // namespace txl
