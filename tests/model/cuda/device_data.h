#pragma once

// What a kernel's test holds its data in. Every test of model/cuda/kernels is
// built twice (txl_kernel_test in cmake/TxlCuda.cmake): with the emulated
// kernels, and, where TXL_CUDA is on, from the same source with the CUDA ones.
// A kernel on a device cannot read a std::vector, so tests write
//
//   const Array<float> x = ToDevice(values);
//   const Array<M> out = Unwritten<M>(count);
//   LaunchSomething(stream, x.data(), out.data());
//   stream.Wait();
//   EXPECT_EQ(ToHost(out), expected);
//
// and use neither emulated_block.h nor anything else that one kind lacks.
//
// Arrays have exactly the size asked for: under AddressSanitizer, and under
// compute-sanitizer on a device, a kernel that reads or writes beyond one is
// found out.

#include <cstdint>
#include <type_traits>
#include <vector>

#include "model/cuda/device/runtime.h"

#if !defined(TXL_DEVICE_TEST)
#include "tests/model/cuda/emulator/emulated_block.h"
#endif

namespace txl::cuda {

// Another order of the emulated threads and blocks; a device has its own.
inline void ShuffleThreads([[maybe_unused]] uint64_t seed) {
#if !defined(TXL_DEVICE_TEST)
  emulator::SetSeed(seed);
#endif
}

// On the device; bytes 0xff, which is NaN in every format and -1 in integers.
template <typename T>
Array<T> Unwritten(int64_t size) {
  static_assert(std::is_trivially_copyable_v<T>);
  Array<T> array(MemoryKind::kDevice, size);
  Stream stream;
  stream.Fill(array.data(), 0xff, array.bytes());
  stream.Wait();
  return array;
}

// Writes over an array of the same size, for a test that launches often.
template <typename T>
void CopyTo(const Array<T>& array, const std::vector<T>& values) {
  if (array.size() != static_cast<int64_t>(values.size())) {
    throw DeviceError("an array of another size");
  }
  Stream stream;
  stream.Copy(array.data(), values.data(), array.bytes());
  stream.Wait();
}

template <typename T>
Array<T> ToDevice(const std::vector<T>& values) {
  Array<T> array = Unwritten<T>(static_cast<int64_t>(values.size()));
  CopyTo(array, values);
  return array;
}

// REQUIRES: the work that writes the array is done (Stream::Wait).
template <typename T>
std::vector<T> ToHost(const Array<T>& array) {
  std::vector<T> values(array.size());
  Stream stream;
  stream.Copy(values.data(), array.data(), array.bytes());
  stream.Wait();
  return values;
}

}  // namespace txl::cuda
