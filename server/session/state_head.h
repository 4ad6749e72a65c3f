#pragma once

// All of a state image but its data, as bytes of files.

#include "model/memory/state_image.h"
#include "server/base/byte_fields.h"

namespace txl {

void WriteStateHead(const StateImage& image, ByteWriter& out);

// Leaves the image's data as it is. What the fields say is not checked: that is
// CheckStateImage's task.
void ReadStateHead(ByteReader& in, StateImage& image);

}  // namespace txl
