#include "model/convert/convert.h"

#include <fstream>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/convert/staged_directory.h"
#include "model/convert/tensor_file_writer.h"
#include "model/convert/vocabulary/vocabulary_files.h"

namespace txl {
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
