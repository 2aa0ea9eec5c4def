#pragma once

namespace muonwalk::bench {

/// What a processor multiplies and adds with, in registers.
enum class MultiplyAdd {
  widest,  ///< fused multiply-adds of float32 in the widest vectors that this is compiled for
  avx2,    ///< the same in vectors of at most 256 bits, which Eigen's code without AVX-512 uses
  pairs,   ///< pairs of bfloat16 (vdpbf16ps); 0 where this is compiled for a processor that has none
  tiles,   ///< tiles of bfloat16 (tdpbf16ps, AMX); the same
};

/// 10⁹ floating point operations a second that one core does so: independent sums in registers, no memory. The time is
/// the calling thread's own. Takes about 10 ms.
double multiply_add_peak(MultiplyAdd kind = MultiplyAdd::widest);

/// The same of `threads` threads at once, all together, each in its own time: the middle one of several measurements.
double multiply_add_peak_of(int threads, MultiplyAdd kind = MultiplyAdd::widest);

}  // namespace muonwalk::bench
