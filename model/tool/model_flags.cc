#include "model/tool/model_flags.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "model/base/number_format.h"
#include "model/base/status_macros.h"
#include "model/cpu/attention_form.h"
#include "model/text/ngram_table.h"
#include "model/text/utf8.h"
#include "model/train/run_folder.h"
#include "model/train/streams.h"
#include "program/command_line.h"
#include "program/flag_checks.h"

namespace txl {

void AddModelFlags(CLI::App& app, ModelFlags& flags) {
  app.add_option("DIR", flags.directory, "model directory")
      ->required()
      ->check(CLI::ExistingDirectory);
  AddNamedFlag(app, "--dtype", flags.dtype, ComputeNames(),
               "number format of the arithmetic");
  app.add_option("--device", flags.device, "auto, cpu, cuda or cuda:N");
  app.add_option("--threads", flags.threads)->check(Between(1, kMaxThreads));
}

absl::StatusOr<c10::Device> ParseDevice(const std::string& name) {
  if (name == "cpu") return c10::Device(c10::kCPU);
  if (name == "auto") {
    return c10::Device(at::hasCUDA() ? c10::kCUDA : c10::kCPU);
  }
  if (name != "cuda" && !name.starts_with("cuda:")) {
    return absl::InvalidArgumentError(
        absl::StrCat("--device: ", name, " is not auto, cpu, cuda or cuda:N"));
  }
  if (!at::hasCUDA()) {
    return absl::InvalidArgumentError("--device: no GPU is available");
  }
  return c10::Device(name);
}

void AddUnknownSymbolFlag(CLI::App& app, std::string* word) {
  app.add_option("--unknown", *word,
                 "text without a symbol: skip leaves it out, unk takes the "
                 "vocabulary's unknown symbol; any other symbol of the "
                 "vocabulary stands for it [unk where there is one, else "
                 "refused with counts]");
}

absl::StatusOr<EncodeOptions> EncodeOptionsOf(const Vocabulary& vocabulary,
                                              absl::string_view word) {
  if (word == kUnknownSymbol && !vocabulary.has_unknown()) {
    return absl::InvalidArgumentError(
        "--unknown: the vocabulary has no unknown symbol");
  }
  EncodeOptions options = {.skip_unknown = word == kSkipUnknown};
  if (word.empty() || word == kUnknownSymbol || word == kSkipUnknown) {
    return options;
  }
  const auto ids = vocabulary.Encode(word);
  if (!ids.ok() || ids->size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--unknown: \"", absl::Utf8SafeCEscape(word),
                     "\" is not one symbol of the vocabulary"));
  }
  options.unknown_id = ids->front();
  return options;
}

namespace {

// "; pieces of text without a symbol: 13 ("X" 12x, "Y" 1x)", the most frequent
// first; empty where there are none.
std::string UnknownPieces(const Vocabulary& vocabulary,
                          absl::string_view text) {
  constexpr size_t kShown = 8;
  std::map<std::string, int64_t> counts;
  EncodeOptions options = {.unknown_counts = &counts};
  if (!vocabulary.EncodeDocument(text, options).ok() || counts.empty()) {
    return "";
  }
  std::vector<std::pair<int64_t, std::string>> order;
  int64_t all = 0;
  for (const auto& [piece, count] : counts) {
    order.emplace_back(-count, piece);
    all += count;
  }
  std::sort(order.begin(), order.end());
  std::string said = absl::StrCat("; pieces of text without a symbol: ", all);
  for (size_t i = 0; i < std::min(order.size(), kShown); ++i) {
    absl::StrAppend(&said, i == 0 ? " (" : ", ", "\"",
                    absl::Utf8SafeCEscape(Utf8Prefix(order[i].second, 40)),
                    "\" ", -order[i].first, "x");
  }
  return absl::StrCat(said, order.size() > kShown ? ", ..." : "", ")");
}

}  // namespace

absl::StatusOr<absl::string_view> TextFor(const Vocabulary& vocabulary,
                                          absl::string_view bytes,
                                          absl::string_view name) {
  const bool takes_bytes =
      vocabulary.kind() == "bytes" || vocabulary.kind() == "decimal_bytes";
  return takes_bytes ? bytes : TextOfFile(bytes, name);
}

absl::StatusOr<std::vector<int32_t>> IdsOfFile(const std::string& path,
                                               const Vocabulary& vocabulary,
                                               absl::string_view unknown) {
  TXL_ASSIGN_OR_RETURN(const std::string file, ReadTextFile(path));
  TXL_ASSIGN_OR_RETURN(const absl::string_view text,
                       TextFor(vocabulary, file, path));
  TXL_ASSIGN_OR_RETURN(const EncodeOptions options,
                       EncodeOptionsOf(vocabulary, unknown));
  absl::StatusOr<std::vector<int32_t>> ids =
      vocabulary.EncodeDocument(text, options);
  if (ids.ok()) return ids;
  return absl::Status(ids.status().code(),
                      absl::StrCat(path, ": ", ids.status().message(),
                                   UnknownPieces(vocabulary, text)));
}

std::vector<std::string> ModelFiles(const std::string& folder) {
  std::vector<std::string> files;
  for (const std::string& name : RunFiles(folder)) {
    if (name != kNgramsName) files.push_back(absl::StrCat(folder, "/", name));
  }
  return files;
}

absl::Status CheckReplacesNone(const std::vector<std::string>& written,
                               const std::vector<std::string>& read) {
  for (const std::string& out : written) {
    for (const std::string& in : read) {
      std::error_code ignored;  // one of them is not there
      if (!std::filesystem::equivalent(out, in, ignored)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "--out: would replace ", in, ", which the command reads"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<OpenModel> OpenModelOf(const ModelFlags& flags) {
  at::set_num_threads(flags.threads);
  TXL_ASSIGN_OR_RETURN(const c10::Device device, ParseDevice(flags.device));
  TXL_ASSIGN_OR_RETURN(ModelDirectory directory,
                       OpenModelDirectory(flags.directory));
  TXL_ASSIGN_OR_RETURN(Weights weights,
                       LoadDirectoryWeights(directory, {flags.dtype, device}));
  return OpenModel{std::move(directory), std::move(weights)};
}

const NamesOf<NormPlacement>& NormNames() {
  static const auto* names = new NamesOf<NormPlacement>{
      {"pre", NormPlacement::kPre}, {"post", NormPlacement::kPost}};
  return *names;
}

const NamesOf<CorpusVocabulary>& VocabularyNames() {
  static const auto* names = new NamesOf<CorpusVocabulary>{
      {"bytes", CorpusVocabulary::kBytes},
      {"characters", CorpusVocabulary::kCharacters}};
  return *names;
}

const NamesOf<c10::ScalarType>& DTypeNames() {
  static const auto* names =
      new NamesOf<c10::ScalarType>{{"f32", c10::kFloat},
                                   {"f16", c10::kHalf},
                                   {"bf16", c10::kBFloat16},
                                   {"f64", c10::kDouble}};
  return *names;
}

const NamesOf<c10::ScalarType>& ComputeNames() {
  static const auto* names =
      new NamesOf<c10::ScalarType>{{"f32", c10::kFloat}, {"f64", c10::kDouble}};
  return *names;
}

namespace {

std::vector<std::string> FormNames() {
  std::vector<std::string> names = {"auto"};
  for (const NamedForm& named : kForms) names.emplace_back(named.name);
  return names;
}

}  // namespace

void AddFormatFlags(CLI::App& app, FormatFlags& flags) {
  app.add_option("--form", flags.form,
                 "attention of the serving engine; auto: the cheaper form")
      ->transform(OneOf(FormNames()));
  app.add_option(
         "--weights", flags.weights,
         "format of the serving engine's weights; int8: one scale per output; "
         "int4: also one step per 32 inputs, with words in int8")
      ->transform(OneOf(FormatNames(kWeightFormats)));
  app.add_option("--memory", flags.memory,
                 "format of its segment memory's rows")
      ->transform(OneOf(FormatNames(kRowFormats)));
  app.add_option("--derived", flags.derived,
                 "format of its keys, values and positional keys")
      ->transform(OneOf(FormatNames(kRowFormats)));
  app.add_option("--products", flags.products,
                 "products of rows with int8 and int4 weights; int8: the rows "
                 "are rounded to 8 bits")
      ->transform(OneOf(ProductNames()));
  std::vector<std::string> targets = VectorTargets();
  targets.insert(targets.begin(), kAutoVectorTarget);
  app.add_option("--vector-target", flags.vector_target,
                 "instruction set of the serving engine; auto: the best one of "
                 "this machine")
      ->transform(OneOf(targets));
}

NativeFormats FormatsOf(const FormatFlags& flags) {
  NativeFormats formats;
  formats.weights = FindFormat(kWeightFormats, flags.weights).value();
  formats.memory = FindFormat(kRowFormats, flags.memory).value();
  formats.derived = FindFormat(kRowFormats, flags.derived).value();
  formats.form = FindForm(flags.form);
  formats.products = FindProducts(flags.products).value();
  return formats;
}

absl::Status RequireDefaults(const FormatFlags& flags,
                             absl::string_view needed) {
  const FormatFlags defaults;
  struct Value {
    const char* flag;
    const std::string& own;
    const std::string& usual;
  };
  for (const Value& value :
       {Value{"--form", flags.form, defaults.form},
        Value{"--weights", flags.weights, defaults.weights},
        Value{"--memory", flags.memory, defaults.memory},
        Value{"--derived", flags.derived, defaults.derived},
        Value{"--products", flags.products, defaults.products},
        Value{"--vector-target", flags.vector_target,
              defaults.vector_target}}) {
    if (value.own == value.usual) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(value.flag, ": ", value.own, " needs ", needed));
  }
  return absl::OkStatus();
}

}  // namespace txl
