#pragma once

// A session's segment memory outside its slot: what eviction, rollback and
// later export move around. Bit-exact: importing an exported image gives the
// same rows.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "model/base/large_vector.h"

namespace txl {

// What an image must have been made by to be importable.
struct StateIdentity {
  std::string fingerprint;  // of weights and config
  int64_t window = 0;       // serving window W
  int64_t mem_len = 0;
  int64_t d_model = 0;
  int64_t n_layer = 0;
  bool zero_start = false;
  std::string row_dtype;  // "f32", ...
  std::string kernel;     // "torch-cpu", ... form and instruction set
  friend bool operator==(const StateIdentity&, const StateIdentity&) = default;
};

struct StateImage {
  static constexpr uint32_t kFormatVersion = 1;

  uint32_t format_version = kFormatVersion;
  StateIdentity identity;
  // Fed rows: the image holds those of positions position-rows..position-1.
  int64_t position = 0;
  int64_t rows = 0;  // per layer, <= mem_len; includes zero-start rows
  // [n_layer, rows, d_model], oldest first; behind a row of int8 its scale.
  LargeVector<uint8_t> data;
  uint64_t checksum = 0;  // of every field above

  int64_t Bytes() const { return static_cast<int64_t>(data.size()); }
  // Sets checksum from the other fields.
  void Seal();
};

// InvalidArgument naming the field in which `image` does not fit `identity`,
// or DataLoss when the checksum or a size is wrong.
absl::Status CheckStateImage(const StateImage& image,
                             const StateIdentity& identity);

// The rows of a state image, whatever their numbers are stored as.

// [n_layer, rows, d_model], as float32; float64 is rounded. InvalidArgument for
// a row_dtype other than f64, f32, f16, bf16 and int8, or data of another size.
absl::StatusOr<LargeVector<float>> WidenRows(const StateImage& image);
// WidenRows for one layer, into `numbers`: [rows, d_model]. A span of another
// size is InvalidArgument too. REQUIRES: 0 <= layer < n_layer.
absl::Status WidenLayer(const StateImage& image, int64_t layer,
                        absl::Span<float> numbers);

// The bytes of a layer's row, empty if the image has no rows. REQUIRES: the
// data are n_layer * rows rows of equal size, and row and layer are in range.
absl::Span<const uint8_t> RowOf(const StateImage& image, int64_t layer,
                                int64_t row);

// An image of these rows alone, oldest first, not sealed. REQUIRES: as RowOf.
StateImage WithRows(const StateImage& image, absl::Span<const int64_t> rows);

}  // namespace txl
