#pragma once

// Functions that device code calls as well as the host's: plain C++ in a
// header, inline.

#if defined(__CUDACC__)
#define TXL_ANYWHERE __host__ __device__ inline
#else
#define TXL_ANYWHERE inline
#endif
