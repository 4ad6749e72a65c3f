#include "model/convert/family/tensorflow_adaptive.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace txl {
namespace {

constexpr char kEmbed[] = "transformer/adaptive_embed/";
constexpr char kSoftmax[] = "transformer/adaptive_softmax/";

struct Bin {
  int64_t begin = 0, end = 0, width = 0;
  bool projected = false;  // at its input
};

std::string Cutoff(absl::string_view scope, int64_t bin) {
  return absl::StrCat(scope, "cutoff_", bin, "/");
}

// How many bins have a variable: SCOPE/cutoff_0/NAME, SCOPE/cutoff_1/NAME, ...
int64_t CountBins(absl::string_view scope, absl::string_view name,
                  const TensorTable& table) {
  int64_t bins = 0;
  while (table.Has(absl::StrCat(Cutoff(scope, bins), name))) ++bins;
  return bins;
}

StoredTensor Projection(const std::string& name, int64_t width, int64_t d_model,
                        PlanBuilder& builder) {
  return Transposed(builder.table.Take(name, {width, d_model}));
}

// div_val 1: the bins are cuts of one table, as long as their biases.
std::vector<Bin> PlanOneTable(int64_t d_model, PlanBuilder& builder) {
  TensorTable& table = builder.table;
  const std::string name = absl::StrCat(kEmbed, "lookup_table");
  const std::string projection = absl::StrCat(kEmbed, "proj_W");
  const int64_t vocabulary = table.Dim(name, 0), width = table.Dim(name, 1);
  const StoredTensor words = table.Take(name, {vocabulary, width});
  const int64_t cuts = CountBins(kSoftmax, "b", table);
  std::vector<Bin> bins;
  int64_t begin = 0;
  for (int64_t b = 0; b < std::max<int64_t>(cuts, 1); ++b) {
    const int64_t size =
        cuts == 0 ? vocabulary : table.Dim(Cutoff(kSoftmax, b) + "b", 0);
    if (size < 1 || size > vocabulary - begin) {
      table.Fail(absl::StrCat("tensor ", Cutoff(kSoftmax, b),
                              "b has more numbers than ", name,
                              " has rows left"));
      return {};
    }
    bins.push_back({begin, begin + size, width, table.Has(projection)});
    begin += size;
  }
  if (begin != vocabulary) {
    table.Fail(absl::StrCat("tensor ", name, " has ", vocabulary,
                            " rows, the biases of the softmax ", begin));
  }
  if (!table.status().ok()) return {};
  for (size_t b = 0; b < bins.size(); ++b) {
    builder.Add(absl::StrCat("emb.", b, ".w"),
                Rows(words, bins[b].begin, bins[b].end));
    if (!bins[b].projected) continue;
    builder.Add(absl::StrCat("emb.", b, ".proj"),
                Projection(projection, width, d_model, builder));
  }
  return bins;
}

// div_val above 1: a table for each bin, and a projection unless a bin as wide
// as the model goes without (proj_same_dim=False).
std::vector<Bin> PlanTables(int64_t d_model, PlanBuilder& builder) {
  TensorTable& table = builder.table;
  const int64_t count = CountBins(kEmbed, "lookup_table", table);
  std::vector<Bin> bins;
  int64_t begin = 0;
  for (int64_t b = 0; b < count; ++b) {
    const std::string scope = Cutoff(kEmbed, b);
    const int64_t rows = table.Dim(scope + "lookup_table", 0);
    const int64_t width = table.Dim(scope + "lookup_table", 1);
    constexpr int64_t kMaxVocabulary = int64_t{1} << 30;
    if (rows > kMaxVocabulary || begin > kMaxVocabulary) {
      table.Fail(absl::StrCat("tensor ", scope, "lookup_table has ", rows,
                              " rows, too many"));
      return {};
    }
    bins.push_back({begin, begin + rows, width, table.Has(scope + "proj_W")});
    begin += rows;
    builder.Add(absl::StrCat("emb.", b, ".w"),
                table.Take(scope + "lookup_table", {rows, width}));
    if (!bins.back().projected) continue;
    builder.Add(absl::StrCat("emb.", b, ".proj"),
                Projection(scope + "proj_W", width, d_model, builder));
  }
  return bins;
}

// The divisor that gives the bins' widths, rounded down at each power; 0 when
// there is none.
int64_t DivVal(const std::vector<Bin>& bins) {
  constexpr int64_t kMaxWidth = int64_t{1} << 20;
  if (bins[0].width > kMaxWidth) return 0;
  for (int64_t div = 2; div <= std::max<int64_t>(bins[0].width, 2); ++div) {
    int64_t width = bins[0].width;
    bool fits = true;
    for (size_t b = 1; b < bins.size() && fits; ++b) {
      width /= div;  // floors of floors are floors of the power
      fits = width == bins[b].width;
    }
    if (fits) return div;
  }
  return 0;
}

void PlanHeadBin(int64_t b, bool single, const Bin& bin, int64_t d_model,
                 PlanBuilder& builder, std::vector<bool>& tied) {
  const std::string scope = Cutoff(kSoftmax, b);
  const std::string bias =
      single ? absl::StrCat(kSoftmax, "bias") : scope + "b";
  builder.Add(absl::StrCat("head.", b, ".b"),
              builder.table.Take(bias, {bin.end - bin.begin}));
  const bool own = builder.table.Has(scope + "proj");
  if (own) {
    builder.Add(absl::StrCat("head.", b, ".proj"),
                Projection(scope + "proj", bin.width, d_model, builder));
  }
  tied.push_back(bin.projected && !own);
}

void PlanHead(const std::vector<Bin>& bins, int64_t d_model,
              PlanBuilder& builder) {
  TensorTable& table = builder.table;
  const int64_t count = static_cast<int64_t>(bins.size());
  const bool single = table.Has(absl::StrCat(kSoftmax, "bias"));
  std::vector<bool> tied;
  bool any_projection = false;
  for (int64_t b = 0; b < count; ++b) {
    PlanHeadBin(b, single, bins[b], d_model, builder, tied);
    any_projection = any_projection || bins[b].projected;
  }
  if (any_projection) builder.draft.FromWeights("tie_projs", tied);
  if (count < 2) return;
  const std::string head = Cutoff(kSoftmax, 0);
  builder.Add("head.cluster.w",
              table.Take(head + "cluster_W", {count - 1, bins[0].width}));
  builder.Add("head.cluster.b", table.Take(head + "cluster_b", {count - 1}));
}

}  // namespace

void PlanTfAdaptive(int64_t d_model, PlanBuilder& builder) {
  const bool one_table =
      builder.table.Has(absl::StrCat(kEmbed, "lookup_table"));
  const std::vector<Bin> bins =
      one_table ? PlanOneTable(d_model, builder) : PlanTables(d_model, builder);
  if (!builder.table.status().ok() || bins.empty()) return;
  std::vector<int64_t> cutoffs;
  for (size_t b = 1; b < bins.size(); ++b) cutoffs.push_back(bins[b].begin);
  builder.draft.FromWeights("vocab_size", bins.back().end);
  builder.draft.FromWeights("d_embed", bins[0].width);
  builder.draft.FromWeights("cutoffs", cutoffs);
  builder.draft.FromWeights("emb_proj_bin0",
                            bins[0].projected ? "present" : "absent");
  if (one_table) {
    builder.draft.FromWeights("div_val", 1);
  } else {
    const int64_t div_val = DivVal(bins);
    if (div_val == 0) {
      builder.table.Fail(absl::StrCat("no div_val gives the widths of ", kEmbed,
                                      "cutoff_*/lookup_table"));
    }
    builder.draft.FromWeights("div_val", div_val);
  }
  PlanHead(bins, d_model, builder);
}

}  // namespace txl
