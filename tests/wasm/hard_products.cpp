// Products whose every step is next to halfway between two floats, in which code that rounds twice is found out: prints
// digests of them, which are the same on every processor.
#include <fmt/format.h>
#include <xxhash.h>

#include <cmath>

#include "src/numerics/bfloat16.hpp"
#include "src/numerics/chain_product.hpp"
#include "src/numerics/philox.hpp"

using namespace muonwalk;

// Numbers just above and below powers of two.
Matrix near_powers(std::uint64_t seed, Index rows, Index cols) {
  Matrix x = random_matrix({seed, 1}, rows, cols);
  const Matrix powers = random_matrix({seed, 2}, rows, cols);
  for (Index i = 0; i < x.size(); ++i)
    x.data()[i] = std::ldexp(1 + std::ldexp(std::nearbyint(2 * x.data()[i]), -23),
                             static_cast<int>(std::nearbyint(8 * powers.data()[i])));
  return x;
}

int main(int, char**) {
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    const Index size = 200;
    Matrix left = near_powers(1, size, size), right = near_powers(2, size, size), out(size, size);
    if (precision == Precision::bf16) {
      round_to_bf16(left.data(), left.size());
      round_to_bf16(right.data(), right.size());
    }
    // What is added lies as far above the products as a float is long, and has all bits that it can have.
    for (Index i = 0; i < size * size; ++i)
      out.data()[i] = std::ldexp(random_value({3, 1}, static_cast<std::uint64_t>(i)), 24);
    for (Index k = 0; k < size; ++k) {
      ChainProduct p;
      p.rows = p.cols = size, p.depth = 1;
      p.left = left.data() + k, p.left_row = size;
      p.right = right.data() + k * size;
      p.addend = p.out = out.data();
      p.addend_scale = -0x1.fffffep-1f;
      p.precision = precision;
      compute(p, 1);
    }
    const auto bytes = static_cast<std::size_t>(out.size()) * sizeof(float);
    fmt::print("{} {:016x}\n", precision_name(precision), XXH3_64bits(out.data(), bytes));
  }
  return 0;
}
