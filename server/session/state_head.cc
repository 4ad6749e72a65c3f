#include "server/session/state_head.h"

namespace txl {

void WriteStateHead(const StateImage& image, ByteWriter& out) {
  const StateIdentity& identity = image.identity;
  out.U32(image.format_version);
  out.Text(identity.fingerprint);
  out.I64(identity.window);
  out.I64(identity.mem_len);
  out.I64(identity.d_model);
  out.I64(identity.n_layer);
  out.U8(identity.zero_start ? 1 : 0);
  out.Text(identity.row_dtype);
  out.Text(identity.kernel);
  out.I64(image.position);
  out.I64(image.rows);
  out.U64(image.checksum);
}

void ReadStateHead(ByteReader& in, StateImage& image) {
  StateIdentity& identity = image.identity;
  image.format_version = in.U32();
  identity.fingerprint = in.Text();
  identity.window = in.I64();
  identity.mem_len = in.I64();
  identity.d_model = in.I64();
  identity.n_layer = in.I64();
  identity.zero_start = in.U8() != 0;
  identity.row_dtype = in.Text();
  identity.kernel = in.Text();
  image.position = in.I64();
  image.rows = in.I64();
  image.checksum = in.U64();
}

}  // namespace txl
