#include "model/convert/family/family.h"

#include <array>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace txl {

std::vector<int64_t> PlannedTensor::shape() const {
  std::vector<int64_t> shape = pieces.front().shape;
  for (size_t i = 1; i < pieces.size(); ++i) {
    shape[axis] += pieces[i].shape[axis];
  }
  return shape;
}

absl::string_view FieldOriginName(FieldOrigin origin) {
  switch (origin) {
    case FieldOrigin::kWeights:
      return "weights";
    case FieldOrigin::kSpec:
      return "spec";
    case FieldOrigin::kCheckpoint:
      return "checkpoint";
    case FieldOrigin::kFamily:
      return "family default";
  }
  return "";
}

namespace {

// A new family: its two functions in family.h, and a line here.
constexpr std::array kFamilies = {
    Family{"kimiyoung",
           "kimiyoung/transformer-xl in PyTorch (and the 2019 "
           "release of NVIDIA's)",
           MatchesKimiyoung, PlanKimiyoung},
    Family{"huggingface", "Hugging Face transformers, TransfoXL",
           MatchesHuggingFace, PlanHuggingFace, true},
    Family{"nvidia", "NVIDIA DeepLearningExamples, Transformer-XL in PyTorch",
           MatchesNvidia, PlanNvidia},
    Family{"ptb-article", "the from-scratch article on Penn Treebank",
           MatchesPtbArticle, PlanPtbArticle},
    Family{"compound-word", "compound-word-transformer, remi-xl",
           MatchesCompoundWord, PlanCompoundWord},
    Family{"tensorflow", "kimiyoung/transformer-xl in TensorFlow",
           MatchesTensorFlow, PlanTensorFlow},
    Family{"remi", "REMI and Jazz Transformer, in TensorFlow with Keras",
           MatchesRemi, PlanRemi},
    Family{"fastai", "fastai v1 and musicautobot, TransformerXL", MatchesFastai,
           PlanFastai},
    Family{"labml", "labml.ai's annotated Transformer-XL", MatchesLabml,
           PlanLabml},
    Family{"sorter", "augustwester/transformer-xl, the sorter of digits",
           MatchesSorter, PlanSorter},
    Family{"thu", "THUDM/Chinese-Transformer-XL, Megatron and DeepSpeed",
           MatchesMegatron, PlanMegatron},
};

std::string Ids() {
  return absl::StrJoin(kFamilies, ", ",
                       [](std::string* out, const Family& family) {
                         absl::StrAppend(out, family.id);
                       });
}

// A few names, so that people can tell what they have.
std::string FirstNames(const NativeCheckpoint& checkpoint) {
  constexpr size_t kShown = 3;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    if (names.size() == kShown) break;
    names.push_back(name);
  }
  return names.empty() ? "no tensor" : absl::StrJoin(names, ", ");
}

absl::StatusOr<const Family*> Recognise(const NativeCheckpoint& checkpoint) {
  const Family* found = nullptr;
  for (const Family& family : kFamilies) {
    if (!family.matches(checkpoint)) continue;
    if (found != nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(checkpoint.path, ": could be of family ", found->id,
                       " or ", family.id, ", say which with --format"));
    }
    found = &family;
  }
  if (found == nullptr && checkpoint.tensors.contains("emb.0.w")) {
    return absl::InvalidArgumentError(
        absl::StrCat(checkpoint.path,
                     ": has the tensors of a model directory, which needs "
                     "no conversion"));
  }
  if (found == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        checkpoint.path, ": is of no known family (holds ",
        checkpoint.tensors.size(), " tensors: ", FirstNames(checkpoint),
        "; --format takes ", Ids(), ")"));
  }
  return found;
}

}  // namespace

absl::Span<const Family> Families() { return kFamilies; }

absl::StatusOr<const Family*> ChooseFamily(absl::string_view format,
                                           const NativeCheckpoint& checkpoint) {
  if (format == "auto") return Recognise(checkpoint);
  for (const Family& family : kFamilies) {
    if (family.id == format) return &family;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--format ", format, " is unknown, must be auto, ", Ids()));
}

}  // namespace txl
