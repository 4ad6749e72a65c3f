#include "model/torch/absorbed_attention.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/reference/attention.h"

namespace txl {
namespace {

PositionTable MakeTable(const ModelConfig& config, const LayerWeights& layer,
                        const at::Tensor& encoding, int64_t window) {
  const double scale = 1 / std::sqrt(static_cast<double>(config.d_head));
  PositionTable table;
  if (config.pos == PositionKind::kTable) {
    // [columns, H, D] -> [H, D, columns]
    table.keys =
        TableRows(config, layer.rel_t, window).permute({1, 2, 0}).contiguous();
    if (layer.rel_s.defined()) {
      table.bias =
          TableRows(config, layer.rel_s, window).t().mul(scale).contiguous();
    }
    return table;
  }
  // [H*D, d] x [d, columns]
  table.keys = at::mm(layer.wr, encoding.t())
                   .view({config.n_head, config.d_head, encoding.size(0)});
  return table;
}

// Positional scores of a segment's rows against its keys:
// by_distance [rows, H, columns] -> [rows, H, keys].
at::Tensor ScoresByKey(const at::Tensor& by_distance,
                       const SegmentView& segment) {
  const at::Tensor mine =
      by_distance.narrow(0, segment.first_row, segment.rows);
  if (segment.rows == 1) {
    return mine.index_select(2, segment.columns.view({segment.keys}));
  }
  return mine.gather(
      2, segment.columns.expand({segment.rows, mine.size(1), segment.keys}));
}

// Sum over a segment's visible rows, weighted by the softmax of their scores:
// writes context [rows, H, d]. After its newest row, a session that has not
// filled its ring has start rows and masked rows only. One start row stands for
// all of them and is multiplied once.
void AttendSegment(const at::Tensor& queries, const at::Tensor& positional,
                   const SegmentView& segment, const StoredRows& stored,
                   at::Tensor& context) {
  const int64_t heads = queries.size(1);
  const int64_t d = queries.size(2);
  const std::vector<int64_t> flat = {segment.rows * heads, d};
  const int64_t written =
      std::min(segment.keys, segment.position + segment.rows);
  const int64_t unwritten = segment.keys - written;
  const at::Tensor& start = stored.arena.start_row(stored.layer);
  const at::Tensor rows =
      stored.arena.Rows(stored.layer, segment.slot).narrow(0, 0, written);
  const at::Tensor own =
      queries.narrow(0, segment.first_row, segment.rows).view(flat);

  at::Tensor scores = at::mm(own, rows.t());
  if (unwritten > 0) {
    scores = at::cat(
        {scores, at::mv(own, start).unsqueeze(1).expand({-1, unwritten})}, 1);
  }
  scores = scores.view({segment.rows, heads, segment.keys});
  scores.add_(ScoresByKey(positional, segment)).add_(segment.mask);
  const at::Tensor probabilities =
      at::softmax(scores, -1).view({segment.rows * heads, segment.keys});
  at::Tensor out =
      context.narrow(0, segment.first_row, segment.rows).view(flat);
  at::mm_out(out, probabilities.narrow(1, 0, written), rows);
  if (unwritten > 0) {
    out.addr_(probabilities.narrow(1, written, unwritten).sum(1), start);
  }
}

}  // namespace

std::vector<PositionTable> MakePositionTables(const ModelConfig& config,
                                              const Weights& weights) {
  const int64_t window = config.serving_window();
  at::Tensor encoding;
  if (config.pos != PositionKind::kTable) {
    int64_t columns = window;
    if (config.clamp_len.has_value() && *config.clamp_len > 0) {
      columns = std::min(columns, *config.clamp_len + 1);
    }
    encoding = PositionEncoding(config, weights, columns)
                   .to(weights.layers[0].wr.options());
  }
  std::vector<PositionTable> tables;
  for (const LayerWeights& layer : weights.layers) {
    tables.push_back(MakeTable(config, layer, encoding, window));
  }
  return tables;
}

SegmentView MakeSegmentView(const RingGeometry& ring, const SegmentView& place,
                            int64_t table_columns, const at::Tensor& like) {
  SegmentView view = place;
  const int64_t newest = place.position + place.rows - 1;
  view.keys =
      ring.zero_start ? ring.capacity() : std::min(ring.capacity(), newest + 1);
  view.columns = at::empty({view.rows, 1, view.keys}, at::kLong);
  view.mask = at::empty({view.rows, 1, view.keys}, at::kDouble);
  int64_t* column = view.columns.data_ptr<int64_t>();
  double* mask = view.mask.data_ptr<double>();
  for (int64_t row = 0; row < view.rows; ++row) {
    const std::vector<int64_t> distances =
        RingDistances(ring, place.position + row, newest);
    for (int64_t key = 0; key < view.keys; ++key) {
      const int64_t distance = distances[key];
      *column++ = std::clamp<int64_t>(distance, 0, table_columns - 1);
      *mask++ = distance < 0 ? -std::numeric_limits<double>::infinity() : 0.0;
    }
  }
  view.columns = view.columns.to(like.device());
  view.mask = view.mask.to(like.options());
  return view;
}

at::Tensor AbsorbedAttention(const AttentionShape& shape,
                             const LayerWeights& weights,
                             const PositionTable& table, const at::Tensor& x,
                             const std::vector<SegmentView>& segments,
                             const StoredRows& stored) {
  const int64_t rows = x.size(0);
  const int64_t d = x.size(1);
  const int64_t h = shape.heads;
  const int64_t w = shape.head_width;
  const double scale = 1 / std::sqrt(static_cast<double>(w));

  const at::Tensor q =
      TiledLinear(x, weights.wq, weights.bq, shape.row_tile).view({rows, h, w});
  const at::Tensor content =
      weights.u.defined() ? q.add(weights.u).mul_(scale) : q.mul(scale);
  const at::Tensor position =
      weights.v.defined() ? q.add(weights.v).mul_(scale) : q.mul(scale);

  const at::Tensor queries =
      TiledHeads(content, weights.wk.view({h, w, d}), shape.row_tile);
  at::Tensor positional = TiledHeads(position, table.keys, shape.row_tile);
  if (table.bias.defined()) positional.add_(table.bias);

  at::Tensor context = at::zeros({rows, h, d}, x.options());
  for (const SegmentView& segment : segments) {
    AttendSegment(queries, positional, segment, stored, context);
  }

  const at::Tensor values = weights.wv.view({h, w, d}).transpose(1, 2);
  at::Tensor out =
      TiledHeads(context, values, shape.row_tile).view({rows, h * w});
  if (weights.bv.defined()) out.add_(weights.bv);
  return TiledLinear(out, weights.wo, weights.bo, shape.row_tile);
}

int64_t PaddedRows(int64_t rows, int64_t tile) {
  return (rows + tile - 1) / tile * tile;
}

at::Tensor PadRows(const at::Tensor& x, int64_t tile) {
  const int64_t missing = PaddedRows(x.size(0), tile) - x.size(0);
  if (missing == 0) return x;
  return at::cat({x, at::zeros({missing, x.size(1)}, x.options())});
}

at::Tensor TiledLinear(const at::Tensor& x, const at::Tensor& w,
                       const at::Tensor& b, int64_t tile) {
  const int64_t rows = x.size(0);
  TORCH_CHECK(rows % tile == 0, rows, " rows in tiles of ", tile);
  at::Tensor out = at::empty({rows, w.size(0)}, x.options());
  const at::Tensor wt = w.t();
  for (int64_t row = 0; row < rows; row += tile) {
    at::Tensor out_tile = out.narrow(0, row, tile);
    if (b.defined()) {
      at::addmm_out(out_tile, b, x.narrow(0, row, tile), wt);
    } else {
      at::mm_out(out_tile, x.narrow(0, row, tile), wt);
    }
  }
  return out;
}

at::Tensor TiledHeads(const at::Tensor& x, const at::Tensor& w, int64_t tile) {
  const int64_t rows = x.size(0);
  TORCH_CHECK(rows % tile == 0, rows, " rows in tiles of ", tile);
  at::Tensor out = at::empty({rows, w.size(0), w.size(2)}, x.options());
  for (int64_t row = 0; row < rows; row += tile) {
    // [H, tile, k] x [H, k, m]
    const at::Tensor product =
        at::bmm(x.narrow(0, row, tile).transpose(0, 1), w);
    out.narrow(0, row, tile).copy_(product.transpose(0, 1));
  }
  return out;
}

}  // namespace txl
