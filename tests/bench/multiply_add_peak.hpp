#pragma once

namespace muonwalk::bench {

/// 10⁹ floating point operations a second that one core does in fused multiply-adds of float32, in the widest vectors
/// that this is compiled for: independent sums in registers, no memory. The time is the calling thread's own. Takes
/// about 10 ms.
double multiply_add_peak();

/// The same of `threads` threads at once, all together, by the wall clock: the middle one of several measurements.
double multiply_add_peak_of(int threads);

}  // namespace muonwalk::bench
