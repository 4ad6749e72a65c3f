#pragma once

// Byte sources made of other byte sources.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/convert/container/byte_source.h"

namespace txl {

// `whole`, whose CRC-32C is verified before anything of it is given out: with
// the first read, by reading all of it once. Reads fail with InvalidArgument
// naming the source when the checksum is another.
std::shared_ptr<const ByteSource> WithCrc32c(
    std::shared_ptr<const ByteSource> whole, uint32_t crc);

// `parts` after one another. Errors of a read are those of the part.
std::shared_ptr<const ByteSource> Joined(
    std::vector<std::shared_ptr<const ByteSource>> parts, std::string name);

// A regular file of `bytes` bytes that is opened for each read, for
// checkpoints of more files than a process may hold open.
std::shared_ptr<const ByteSource> ReopenedFile(std::string path,
                                               uint64_t bytes);

}  // namespace txl
