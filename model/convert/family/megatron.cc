// THUDM's Chinese-Transformer-XL: a Megatron model saved by DeepSpeed, whole or
// as one file per model-parallel rank ("rank.XX." before the places of each).

#include "model/convert/family/megatron.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "model/convert/family/family.h"
#include "model/convert/family/kimiyoung.h"
#include "model/convert/family/plan_builder.h"

namespace txl {
namespace {

constexpr char kMegatronSignature[] = "transformer.r_w_bias";
// seq_length and mem_length of its scripts; when it generates it keeps
// seq_length + mem_length - 1 rows and shows a token all of them and itself.
constexpr int64_t kSegment = 512;
constexpr int64_t kScriptMemory = 256;
constexpr int64_t kGenerationMemory = kSegment + kScriptMemory - 1;

// A rank's share times the ranks. Sizes above what a model may have stay as
// they are, for SetTrunkSizes to refuse.
int64_t Whole(int64_t share, int64_t ranks) {
  constexpr int64_t kLargest = int64_t{1} << 30;
  return share > kLargest || ranks > kLargest ? kLargest : share * ranks;
}

void Join(std::string name, std::vector<StoredTensor> pieces, int64_t axis,
          PlanBuilder& builder) {
  builder.plan.tensors[std::move(name)] = {std::move(pieces), axis};
}

// Each rank's fused rows are its own Q, K and V: piece i of every rank joined
// is the whole Q, K or V.
void JoinFused(const std::string& layer, const char* const (&names)[3],
               const std::vector<StoredTensor>& fused, PlanBuilder& builder) {
  for (int64_t i = 0; i < 3; ++i) {
    std::vector<StoredTensor> pieces;
    for (const StoredTensor& rank : fused) {
      const int64_t rows = rank.shape[0] / 3;
      pieces.push_back(Rows(rank, i * rows, (i + 1) * rows));
    }
    Join(layer + names[i], std::move(pieces), 0, builder);
  }
}

void PlanAttention(int64_t l, const TrunkSizes& sizes, Ranks& ranks,
                   PlanBuilder& builder) {
  const int64_t d = sizes.d_model, width = sizes.width() / ranks.count();
  const int64_t heads = sizes.heads / ranks.count();
  const std::string layer = absl::StrCat("layer.", l, ".");
  const std::string native =
      absl::StrCat("transformer.layers.", l, ".attention.");
  JoinFused(layer, {"wq", "wk", "wv"},
            ranks.Cut(native + "query_key_value.weight", {3 * width, d}),
            builder);
  JoinFused(layer, {"bq", "bk", "bv"},
            ranks.Cut(native + "query_key_value.bias", {3 * width}), builder);
  const auto join = [&](const char* name, const std::string& place,
                        const std::vector<int64_t>& shape, int64_t axis) {
    Join(layer + name, ranks.Cut(place, shape), axis, builder);
  };
  join("wr", native + "relative.weight", {width, d}, 0);
  join("br", native + "relative.bias", {width}, 0);
  join("wo", native + "dense.weight", {d, width}, 1);
  builder.Add(layer + "bo", ranks.Copied(native + "dense.bias", {d}));
  join("u", "transformer.r_w_bias", {heads, sizes.d_head}, 0);
  join("v", "transformer.r_r_bias", {heads, sizes.d_head}, 0);
}

void PlanFeedForward(int64_t l, const TrunkSizes& sizes, Ranks& ranks,
                     PlanBuilder& builder) {
  const int64_t d = sizes.d_model, f = sizes.d_inner / ranks.count();
  const std::string ff = absl::StrCat("layer.", l, ".ff.");
  const std::string native = absl::StrCat("transformer.layers.", l, ".mlp.");
  Join(ff + "w1", ranks.Cut(native + "dense_h_to_4h.weight", {f, d}), 0,
       builder);
  Join(ff + "b1", ranks.Cut(native + "dense_h_to_4h.bias", {f}), 0, builder);
  Join(ff + "w2", ranks.Cut(native + "dense_4h_to_h.weight", {d, f}), 1,
       builder);
  builder.Add(ff + "b2", ranks.Copied(native + "dense_4h_to_h.bias", {d}));
}

void PlanNorm(const std::string& name, const std::string& native,
              const TrunkSizes& sizes, Ranks& ranks, PlanBuilder& builder) {
  builder.Add(name + ".g", ranks.Copied(native + ".weight", {sizes.d_model}));
  builder.Add(name + ".b", ranks.Copied(native + ".bias", {sizes.d_model}));
}

// Rows of the embedding that make the vocabulary divisible stay, unless the
// spec's vocab_size says how many rows are words.
void PlanEmbedding(const PlanInput& input, const TrunkSizes& sizes,
                   Ranks& ranks, PlanBuilder& builder) {
  const int64_t rank_rows = builder.table.Dim("word_embeddings.weight", 0);
  std::vector<StoredTensor> pieces =
      ranks.Cut("word_embeddings.weight", {rank_rows, sizes.d_model});
  const int64_t rows = Whole(rank_rows, ranks.count());
  const int64_t words = InSpec(input, "vocab_size")
                            ? builder.draft.Int("vocab_size", rows)
                            : rows;
  if (words < 1 || words > rows) {
    builder.draft.FromWeights("vocab_size", rows);
    return;
  }
  int64_t left = words;
  std::vector<StoredTensor> kept;
  for (const StoredTensor& piece : pieces) {
    const int64_t take = std::min(left, piece.shape[0]);
    if (take > 0) kept.push_back(Rows(piece, 0, take));
    left -= take;
  }
  builder.draft.FromWeights("vocab_size", words);
  builder.draft.FromWeights("d_embed", sizes.d_model);
  if (words < rows) {
    builder.Note(absl::StrCat("the last ", rows - words, " of ", rows,
                              " embedding rows are left out, as vocab_size "
                              "says"));
  }
  Join("emb.0.w", std::move(kept), 0, builder);
}

void PlanFields(const PlanInput& input, PlanBuilder& builder) {
  ConfigDraft& draft = builder.draft;
  draft.FromWeights("pos", "sin_concat");
  draft.FromWeights("final_norm", true);
  draft.FromWeights("emb_proj_bin0", "absent");
  draft.FromWeights("tie_weight", true);
  draft.FromWeights("head_bias", false);
  draft.FamilyDefault("norm", "pre");
  draft.FamilyDefault("ln_eps", 1e-5);
  draft.FamilyDefault("act", "gelu_tanh");
  draft.FamilyDefault("clamp_len", -1);
  draft.FamilyDefault("mem_init", "empty");
  draft.FamilyDefault("emb_scale", "1");
  AssumeMemory(kGenerationMemory,
               "seq_length + mem_length - 1 as its scripts generate", builder);
  if (InSpec(input, "window")) return;
  const int64_t window = draft.Int("mem_len", 0) + 1;
  draft.FamilyDefault("window", window);
  builder.Note(absl::StrCat(
      "window is not in the checkpoint and its code has two: ", window,
      " keys, mem_len + 1, as it decodes token by token; a segment of its "
      "training sees seq_length, ",
      kSegment, " by its scripts"));
}

// Sizes of the whole model from those of rank 0.
TrunkSizes ReadSizes(int64_t ranks, TensorTable& table) {
  TrunkSizes sizes;
  sizes.layers = table.Count("transformer.layers.");
  sizes.heads = Whole(table.Dim(kMegatronSignature, 0), ranks);
  sizes.d_head = table.Dim(kMegatronSignature, 1);
  sizes.d_model = table.Dim("word_embeddings.weight", 1);
  sizes.d_inner = Whole(
      table.Dim("transformer.layers.0.mlp.dense_h_to_4h.weight", 0), ranks);
  return sizes;
}

}  // namespace

bool MatchesMegatron(const NativeCheckpoint& checkpoint) {
  return HasPart(checkpoint,
                 "transformer.layers.0.attention.relative.weight") &&
         HasPart(checkpoint,
                 "transformer.layers.0.attention.query_key_value.weight");
}

absl::StatusOr<ConversionPlan> PlanMegatron(const PlanInput& input) {
  TXL_ASSIGN_OR_RETURN(const std::vector<std::string> places,
                       RankPlaces(input.checkpoint, kMegatronSignature));
  PlanBuilder builder("thu", input, places[0]);
  Ranks ranks(input, places, builder);
  const TrunkSizes sizes = ReadSizes(ranks.count(), builder.table);
  if (!SetTrunkSizes(sizes, builder)) return builder.table.status();
  // The code divides the hidden size among the heads.
  if (sizes.width() != sizes.d_model) {
    return absl::InvalidArgumentError(absl::StrCat(
        builder.path, ": holds ", sizes.width(), " of the ", sizes.d_model,
        " rows of each projection: shards of other ranks are missing"));
  }
  PlanEmbedding(input, sizes, ranks, builder);
  for (int64_t l = 0; l < sizes.layers; ++l) {
    const std::string native = absl::StrCat("transformer.layers.", l, ".");
    const std::string layer = absl::StrCat("layer.", l, ".");
    PlanNorm(layer + "ln1", native + "input_layernorm", sizes, ranks, builder);
    PlanAttention(l, sizes, ranks, builder);
    PlanNorm(layer + "ln2", native + "post_attention_layernorm", sizes, ranks,
             builder);
    PlanFeedForward(l, sizes, ranks, builder);
  }
  PlanNorm("final", "transformer.final_layernorm", sizes, ranks, builder);
  const std::string frequencies = "transformer.position_embeddings.inv_freq";
  PlanInverseFrequencies(frequencies, sizes.d_model, builder);
  ranks.Ignore(frequencies);
  PlanFields(input, builder);
  TXL_RETURN_IF_ERROR(ranks.Finish());
  return std::move(builder).Finish();
}

namespace {

constexpr char kRank[] = "rank";

// The number in "rank.XX.PLACE"; -1 where there is none.
int64_t RankOf(absl::string_view name) {
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '.');
  int64_t rank = -1;
  const bool named = parts.size() > 1 && parts[0] == kRank &&
                     absl::SimpleAtoi(parts[1], &rank);
  return named ? rank : -1;
}

// The tensors by rank; -1: of a checkpoint in one file.
std::map<int64_t, std::vector<absl::string_view>> NamesByRank(
    const NativeCheckpoint& checkpoint) {
  std::map<int64_t, std::vector<absl::string_view>> names;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    names[RankOf(name)].push_back(name);
  }
  return names;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> RankPlaces(
    const NativeCheckpoint& checkpoint, absl::string_view signature) {
  const auto names = NamesByRank(checkpoint);
  if (names.size() == 1 && names.contains(-1)) {
    TXL_ASSIGN_OR_RETURN(std::string place, PlaceBefore(checkpoint, signature));
    return std::vector<std::string>{std::move(place)};
  }
  std::vector<std::string> places;
  const std::string inner = absl::StrCat(".", signature);
  for (const auto& [rank, own] : names) {
    const auto found = std::find_if(
        own.begin(), own.end(),
        [&](absl::string_view name) { return absl::EndsWith(name, inner); });
    if (rank != static_cast<int64_t>(places.size()) || found == own.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(checkpoint.path, ": rank ", places.size(),
                       " of the shards has no tensor ", signature));
    }
    places.emplace_back(absl::StripSuffix(*found, signature));
  }
  return places;
}

Ranks::Ranks(const PlanInput& input, const std::vector<std::string>& places,
             PlanBuilder& builder)
    : builder_(builder) {
  for (size_t i = 1; i < places.size(); ++i) {
    others_.emplace_back(input.checkpoint, places[i]);
  }
}

std::vector<StoredTensor> Ranks::Cut(const std::string& name,
                                     const std::vector<int64_t>& shape) {
  std::vector<StoredTensor> pieces = {builder_.table.Take(name, shape)};
  for (TensorTable& table : others_) pieces.push_back(table.Take(name, shape));
  return pieces;
}

StoredTensor Ranks::Copied(const std::string& name,
                           const std::vector<int64_t>& shape) {
  return Cut(name, shape).front();
}

void Ranks::Ignore(const std::string& name) {
  for (TensorTable& table : others_) table.Ignore(name);
}

absl::Status Ranks::Finish() const {
  for (const TensorTable& table : others_) {
    TXL_RETURN_IF_ERROR(table.Finish());
  }
  return absl::OkStatus();
}

}  // namespace txl
