#include "model/convert/family/adaptive_head.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/convert/family/plan_builder.h"

namespace txl {
namespace {

using nlohmann::json;

struct Bins {
  int64_t tables = 0;          // 1, or one per bin
  std::vector<int64_t> ends;   // of every bin; the last is vocab_size
  std::vector<int64_t> width;  // of every bin
  int64_t count() const { return static_cast<int64_t>(ends.size()); }
  int64_t begin(int64_t bin) const { return bin == 0 ? 0 : ends[bin - 1]; }
  int64_t size(int64_t bin) const { return ends[bin] - begin(bin); }
};

std::string Table(const AdaptiveNames& names, int64_t bin) {
  return absl::StrCat(names.word_emb, "emb_layers.", bin, ".weight");
}
std::string InputProjection(const AdaptiveNames& names, int64_t table) {
  return absl::StrCat(names.word_emb, "emb_projs.", table);
}
std::string OutputProjection(int64_t bin) {
  return absl::StrCat("crit.out_projs.", bin);
}
std::string OutputTable(const AdaptiveNames& names, int64_t table) {
  return absl::StrCat(names.weight_prefix, table, names.weight_suffix);
}
std::string OutputBias(const AdaptiveNames& names, int64_t table) {
  return absl::StrCat(names.bias_prefix, table, names.bias_suffix);
}

bool DivisorFits(int64_t divisor, const std::vector<int64_t>& widths) {
  int64_t width = widths.front();
  for (const int64_t actual : widths) {
    if (width != actual) return false;
    width /= divisor;
  }
  return true;
}

// The divisor of the draft when it fits, else the smallest that does.
void SetDivisor(const std::vector<int64_t>& widths, PlanBuilder& builder) {
  const int64_t known = builder.draft.Int("div_val", 0);
  if (known >= 1 && DivisorFits(known, widths)) {
    builder.draft.FromWeights("div_val", known);
    return;
  }
  for (int64_t divisor = 1; divisor <= widths.front(); ++divisor) {
    if (!DivisorFits(divisor, widths)) continue;
    builder.draft.FromWeights("div_val", divisor);
    return;
  }
  builder.table.Fail("the widths of the embeddings follow no div_val");
}

// Cutoffs that one table does not show: of the draft, checked.
std::vector<int64_t> KnownCutoffs(int64_t clusters, int64_t vocab_size,
                                  PlanBuilder& builder) {
  const json list = builder.draft.Get("cutoffs");
  const auto fail = [&](const std::string& what) {
    builder.table.Fail(absl::StrCat("field cutoffs ", what));
    return std::vector<int64_t>();
  };
  if (list.is_null()) {
    return fail(absl::StrCat("is nowhere in the file: give its ", clusters,
                             " numbers with --spec"));
  }
  if (!list.is_array() || static_cast<int64_t>(list.size()) != clusters) {
    return fail(absl::StrCat("has other than ", clusters,
                             " numbers, which the clusters show"));
  }
  std::vector<int64_t> cutoffs;
  for (const json& item : list) {
    const int64_t least = cutoffs.empty() ? 0 : cutoffs.back();
    if (!item.is_number_integer() || item <= least || item >= vocab_size) {
      return fail("must increase strictly between 0 and vocab_size");
    }
    cutoffs.push_back(item.get<int64_t>());
  }
  return cutoffs;
}

Bins BinsOfOneTable(const AdaptiveNames& names, int64_t clusters,
                    PlanBuilder& builder) {
  const int64_t vocab_size = builder.table.Dim(Table(names, 0), 0);
  const int64_t width = builder.table.Dim(Table(names, 0), 1);
  Bins bins;
  bins.tables = 1;
  if (clusters > 0) {
    bins.ends = KnownCutoffs(clusters, vocab_size, builder);
    builder.draft.FromWeights("div_val", 1);
  } else {
    builder.draft.FromWeights("cutoffs", json::array());
    builder.draft.FamilyDefault("div_val", 1);
  }
  bins.ends.push_back(vocab_size);
  bins.width.assign(bins.ends.size(), width);
  return bins;
}

Bins BinsOfTables(const AdaptiveNames& names, int64_t tables,
                  PlanBuilder& builder) {
  Bins bins;
  bins.tables = tables;
  int64_t end = 0;
  for (int64_t bin = 0; bin < tables; ++bin) {
    end += builder.table.Dim(Table(names, bin), 0);
    bins.ends.push_back(end);
    bins.width.push_back(builder.table.Dim(Table(names, bin), 1));
  }
  if (!builder.table.status().ok()) return {};
  builder.draft.FromWeights(
      "cutoffs", std::vector<int64_t>(bins.ends.begin(), bins.ends.end() - 1));
  SetDivisor(bins.width, builder);
  return bins;
}

Bins ReadBins(const AdaptiveNames& names, PlanBuilder& builder) {
  TensorTable& table = builder.table;
  const int64_t tables = table.Count(names.word_emb + "emb_layers.");
  const bool has_clusters = table.Has("crit.cluster_weight");
  const int64_t clusters =
      has_clusters ? table.Dim("crit.cluster_weight", 0) : 0;
  if (tables > 1 && clusters != tables - 1) {
    table.Fail(absl::StrCat("there are ", tables, " embeddings and ", clusters,
                            " clusters, one fewer is needed"));
  }
  Bins bins = tables > 1 ? BinsOfTables(names, tables, builder)
                         : BinsOfOneTable(names, clusters, builder);
  if (!table.status().ok()) return {};
  builder.draft.FromWeights("vocab_size", bins.ends.back());
  builder.draft.FromWeights("d_embed", bins.width.front());
  return bins;
}

// One view per bin of tensors that stand once per table.
template <typename NameOf, typename ShapeOf>
std::vector<StoredTensor> PerBin(const Bins& bins, TensorTable& table,
                                 NameOf name_of, ShapeOf shape_of) {
  std::vector<StoredTensor> views;
  for (int64_t bin = 0; bin < bins.count(); ++bin) {
    if (bins.tables == 1) {
      const StoredTensor whole = table.Take(name_of(0), shape_of(0));
      if (!table.status().ok()) return {};
      views.push_back(Rows(whole, bins.begin(bin), bins.ends[bin]));
    } else {
      views.push_back(table.Take(name_of(bin), shape_of(bin)));
    }
  }
  return table.status().ok() ? views : std::vector<StoredTensor>();
}

// Embeddings, output weights and biases.
void PlanTables(const AdaptiveNames& names, const Bins& bins,
                PlanBuilder& builder) {
  TensorTable& table = builder.table;
  const auto rows = [&](int64_t t) {
    return bins.tables == 1 ? bins.ends.back() : bins.size(t);
  };
  const auto shape = [&](int64_t t) {
    return std::vector<int64_t>{rows(t), bins.width[t]};
  };
  const json said = builder.draft.Get("tie_weight");
  std::optional<bool> configured;
  if (said.is_boolean()) configured = said.get<bool>();
  std::vector<bool> tied;
  for (int64_t t = 0; t < bins.tables; ++t) {
    tied.push_back(
        IsTied(builder, OutputTable(names, t), Table(names, t), configured));
  }
  const bool all_tied = std::count(tied.begin(), tied.end(), false) == 0;
  builder.draft.FromWeights("tie_weight", all_tied);
  builder.draft.FromWeights("head_bias", true);
  const auto embeddings = PerBin(
      bins, table, [&](int64_t t) { return Table(names, t); }, shape);
  const auto outputs = PerBin(
      bins, table,
      [&](int64_t t) {
        return tied[t] ? Table(names, t) : OutputTable(names, t);
      },
      shape);
  const auto biases = PerBin(
      bins, table, [&](int64_t t) { return OutputBias(names, t); },
      [&](int64_t t) { return std::vector<int64_t>{rows(t)}; });
  if (!table.status().ok()) return;
  for (int64_t bin = 0; bin < bins.count(); ++bin) {
    builder.Add(absl::StrCat("emb.", bin, ".w"), embeddings[bin]);
    if (!all_tied) builder.Add(absl::StrCat("head.", bin, ".w"), outputs[bin]);
    builder.Add(absl::StrCat("head.", bin, ".b"), biases[bin]);
  }
}

// What the configuration says of one bin's projection.
std::optional<bool> ConfiguredTie(const Bins& bins, int64_t bin,
                                  PlanBuilder& builder) {
  const json list = builder.draft.Get("tie_projs");
  if (!list.is_array() || list.empty()) return std::nullopt;
  if (static_cast<int64_t>(list.size()) != bins.count()) {
    builder.table.Fail(absl::StrCat("field tie_projs has ", list.size(),
                                    " entries for ", bins.count(), " bins"));
    return std::nullopt;
  }
  if (!list[bin].is_boolean()) return std::nullopt;
  return list[bin].get<bool>();
}

void PlanProjections(const AdaptiveNames& names, const Bins& bins,
                     int64_t d_model, PlanBuilder& builder) {
  TensorTable& table = builder.table;
  std::vector<bool> tied(bins.count(), false);
  bool any = false;
  for (int64_t bin = 0; bin < bins.count(); ++bin) {
    const std::optional<bool> configured = ConfiguredTie(bins, bin, builder);
    tied[bin] = configured.value_or(false);
    const std::string input =
        InputProjection(names, bins.tables == 1 ? 0 : bin);
    const std::vector<int64_t> shape = {d_model, bins.width[bin]};
    // Without a projection the widths must be equal.
    if (!table.Has(input) && bins.width[bin] == d_model) continue;
    any = true;
    builder.Add(absl::StrCat("emb.", bin, ".proj"), table.Take(input, shape));
    tied[bin] = IsTied(builder, OutputProjection(bin), input, configured);
    if (tied[bin]) continue;
    builder.Add(absl::StrCat("head.", bin, ".proj"),
                table.Take(OutputProjection(bin), shape));
  }
  const bool bin0 = builder.plan.tensors.contains("emb.0.proj");
  builder.draft.FromWeights("emb_proj_bin0", bin0 ? "present" : "absent");
  if (any) {
    builder.draft.FromWeights("tie_projs", tied);
  } else {
    builder.draft.FamilyDefault("tie_projs", tied);
  }
}

void PlanClusters(const AdaptiveNames& names, const Bins& bins,
                  PlanBuilder& builder) {
  const int64_t clusters = bins.count() - 1;
  if (clusters == 0) return;
  StoredTensor weight =
      builder.table.Take("crit.cluster_weight", {clusters, bins.width.front()});
  StoredTensor bias = builder.table.Take("crit.cluster_bias", {clusters});
  if (!builder.table.status().ok()) return;
  builder.Add("head.cluster.w",
              names.reversed_clusters ? FlippedRows(weight) : weight);
  builder.Add("head.cluster.b",
              names.reversed_clusters ? FlippedRows(bias) : bias);
}

}  // namespace

void PlanAdaptiveHead(const AdaptiveNames& names, PlanBuilder& builder) {
  const Bins bins = ReadBins(names, builder);
  if (!builder.table.status().ok()) return;
  PlanTables(names, bins, builder);
  PlanProjections(names, bins, builder.draft.Int("d_model", 0), builder);
  PlanClusters(names, bins, builder);
}

void PlanPlainHead(const PlainHeadNames& names, int64_t d_model,
                   PlanBuilder& builder) {
  TensorTable& table = builder.table;
  ConfigDraft& draft = builder.draft;
  const int64_t vocab_size = table.Dim(names.embedding, 0);
  if (!table.status().ok()) return;
  draft.FromWeights("vocab_size", vocab_size);
  draft.FromWeights("d_embed", table.Dim(names.embedding, 1));
  draft.FromWeights("cutoffs", nlohmann::json::array());
  draft.FamilyDefault("div_val", 1);
  draft.FamilyDefault("tie_projs", nlohmann::json::array());
  const std::vector<int64_t> shape = {vocab_size, d_model};
  builder.Add("emb.0.w", table.Take(names.embedding, shape));
  const nlohmann::json said = draft.Get("tie_weight");
  std::optional<bool> configured;
  if (said.is_boolean()) configured = said.get<bool>();
  const bool tied = IsTied(builder, names.weight, names.embedding, configured);
  draft.FromWeights("tie_weight", tied);
  if (!tied) builder.Add("head.0.w", table.Take(names.weight, shape));
  builder.Add("head.0.b", table.Take(names.bias, {vocab_size}));
  draft.FromWeights("head_bias", true);
}

}  // namespace txl
