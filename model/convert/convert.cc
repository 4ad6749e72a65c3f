#include "model/convert/convert.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/checkpoint/canonical_tensors.h"
#include "model/config/json_fields.h"
#include "model/config/model_config.h"
#include "model/convert/container/byte_source.h"
#include "model/convert/family/family.h"
#include "model/convert/staged_directory.h"
#include "model/convert/tensor_file_writer.h"
#include "model/convert/vocabulary/vocabulary_files.h"

namespace txl {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// No configuration of a model comes near it.
constexpr uint64_t kMaxConfigBytes = uint64_t{1} << 24;

absl::StatusOr<json> ReadJsonFile(const std::string& path) {
  TXL_ASSIGN_OR_RETURN(const std::shared_ptr<const ByteSource> file,
                       OpenFile(path));
  if (file->size() > kMaxConfigBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is larger than ", kMaxConfigBytes, " bytes"));
  }
  std::string text(file->size(), '\0');
  TXL_RETURN_IF_ERROR(
      file->Read(0, {reinterpret_cast<uint8_t*>(text.data()), text.size()}));
  return ParseJsonObject(text, path);
}

// config.json in the folder of the weights; null when there is none.
absl::StatusOr<json> ConfigBeside(const std::string& source) {
  std::error_code ignored;
  const fs::path folder = fs::is_directory(source, ignored)
                              ? fs::path(source)
                              : fs::path(source).parent_path();
  const fs::path path = folder / "config.json";
  if (!fs::exists(path, ignored)) return json();
  return ReadJsonFile(path.string());
}

absl::Status CheckPieces(const ConversionPlan& plan, const std::string& path) {
  for (const auto& [name, tensor] : plan.tensors) {
    for (const StoredTensor& piece : tensor.pieces) {
      if (piece.dtype != tensor.pieces.front().dtype) {
        return absl::InvalidArgumentError(absl::StrCat(
            path, ": tensor ", name, " is made of pieces of dtype ",
            DTypeName(tensor.pieces.front().dtype), " and ",
            DTypeName(piece.dtype)));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PlannedConversion> PlanConversion(const PlanOptions& options) {
  json spec;
  if (!options.spec_path.empty()) {
    TXL_ASSIGN_OR_RETURN(spec, ReadJsonFile(options.spec_path));
    TXL_RETURN_IF_ERROR(CheckModelConfigKeys(spec, options.spec_path));
  }
  PlannedConversion conversion;
  TXL_ASSIGN_OR_RETURN(conversion.checkpoint, OpenCheckpoint(options.source));
  const NativeCheckpoint& checkpoint = conversion.checkpoint;
  TXL_ASSIGN_OR_RETURN(const Family* family,
                       ChooseFamily(options.format, checkpoint));
  json own_config;
  if (family->reads_config_beside) {
    TXL_ASSIGN_OR_RETURN(own_config, ConfigBeside(options.source));
  }
  TXL_ASSIGN_OR_RETURN(
      conversion.plan,
      family->plan({checkpoint, std::move(own_config), std::move(spec)}));
  TXL_RETURN_IF_ERROR(CheckPieces(conversion.plan, options.source));
  TXL_RETURN_IF_ERROR(CheckCanonicalTensors(
      conversion.plan.config, PlannedInfos(conversion.plan), options.source));
  return conversion;
}

std::map<std::string, TensorInfo> PlannedInfos(const ConversionPlan& plan) {
  std::map<std::string, TensorInfo> infos;
  for (const auto& [name, tensor] : plan.tensors) {
    infos[name] = {tensor.pieces.front().dtype, tensor.shape(), 0, 0};
  }
  return infos;
}

int64_t UniqueParameters(const ConversionPlan& plan) {
  using View = std::tuple<const ByteSource*, int64_t, std::vector<int64_t>,
                          std::vector<int64_t>>;
  std::set<View> seen;
  int64_t count = 0;
  for (const auto& [name, tensor] : plan.tensors) {
    if (name == "pos.inv_freq") continue;  // a constant, not a parameter
    for (const StoredTensor& piece : tensor.pieces) {
      const bool first = seen.emplace(piece.storage.get(), piece.offset,
                                      piece.shape, piece.strides)
                             .second;
      if (first) count += piece.numel();
    }
  }
  return count;
}

std::string ConvertedConfig(const PlannedConversion& conversion) {
  json config = json::parse(ModelConfigToJson(conversion.plan.config));
  config["family"] = conversion.plan.family;
  config["container"] = conversion.checkpoint.container;
  json origins = json::object();
  for (const auto& [field, planned] : conversion.plan.fields) {
    origins[field] = std::string(FieldOriginName(planned.origin));
  }
  config["origins"] = std::move(origins);
  return config.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

namespace {

absl::Status WriteText(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  if (out) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(path, ": cannot be written"));
}

absl::Status WriteFiles(const std::string& folder,
                        const std::map<std::string, std::string>& files) {
  for (const auto& [name, text] : files) {
    TXL_RETURN_IF_ERROR(WriteText(absl::StrCat(folder, "/", name), text));
  }
  return absl::OkStatus();
}

absl::Status WriteModel(const ConvertOptions& options,
                        const PlannedConversion& conversion,
                        const VocabularyFiles& vocabulary) {
  TXL_ASSIGN_OR_RETURN(const std::unique_ptr<StagedDirectory> stage,
                       StagedDirectory::Create(options.directory));
  TXL_RETURN_IF_ERROR(
      WriteText(stage->path() + "/config.json", ConvertedConfig(conversion)));
  TXL_RETURN_IF_ERROR(WriteFiles(stage->path(), vocabulary.files));
  TensorFileOptions tensor_options;
  tensor_options.progress = options.progress;
  const absl::Status written =
      WriteTensorFile(stage->path() + "/model.safetensors",
                      conversion.plan.tensors, tensor_options);
  if (absl::IsInvalidArgument(written)) {  // of a tensor: say whose
    return absl::InvalidArgumentError(
        absl::StrCat(options.plan.source, ": ", written.message()));
  }
  TXL_RETURN_IF_ERROR(written);
  return stage->Commit();
}

}  // namespace

absl::StatusOr<ConvertReport> Convert(const ConvertOptions& options) {
  ConvertReport report;
  TXL_ASSIGN_OR_RETURN(report.conversion, PlanConversion(options.plan));
  const PlannedConversion& conversion = report.conversion;
  TXL_ASSIGN_OR_RETURN(
      const VocabularyFiles vocabulary,
      FindVocabulary({conversion.plan.family, conversion.checkpoint,
                      options.tokenizer_path,
                      conversion.plan.config.vocab_size}));
  report.vocabulary = vocabulary.source;
  TXL_RETURN_IF_ERROR(WriteModel(options, conversion, vocabulary));
  return report;
}

}  // namespace txl
