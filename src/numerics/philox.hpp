#pragma once

#include <array>
#include <cstdint>

#include "src/numerics/matrix.hpp"

namespace muonwalk {

/// One block of Philox 4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011): four 32-bit
/// words from a 128-bit counter and a 64-bit key.
std::array<std::uint32_t, 4> philox4x32_10(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

/// Names one random tensor: the same (seed, tensor) gives the same values everywhere, whoever asks for which part.
struct RandomTensor {
  std::uint64_t seed = 0;    ///< The run's seed.
  std::uint64_t tensor = 0;  ///< The tensor's number in the run.
};

/// Element number `element` of a random tensor: mean 0, variance 1, bell-shaped between ±2√3. It is the sum of the
/// block's four words as uniform numbers (Irwin–Hall of four), which needs no logarithm and so has the same bits on
/// every machine.
float random_value(RandomTensor key, std::uint64_t element);

/// Elements first … first + count − 1 of a random tensor: what a rank calls for its shard. The same bits as
/// random_value.
void random_values(RandomTensor key, std::uint64_t first, Index count, float* out);

/// The whole tensor as a rows × cols matrix: element (i, j) is random_value(key, i · cols + j).
Matrix random_matrix(RandomTensor key, Index rows, Index cols);

}  // namespace muonwalk
