// The kernels against src/numerics and src/optim, bit for bit. Over the stand-in what runs is the kernels' own source;
// on a machine with a GPU, tests/gpu/run.sh runs this test there.

#include "src/cuda/kernels.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "src/errors.hpp"
#include "src/numerics/chain_product.hpp"
#include "src/numerics/newton_schulz.hpp"
#include "src/numerics/tree_sum.hpp"
#include "src/optim/steps.hpp"
#include "tests/cuda/on_device.hpp"
#include "tests/numerics/random_product.hpp"

using namespace muonwalk;
using namespace muonwalk::cuda;

namespace {

// The values on the device, behind so many others: a matrix may begin in the middle of a buffer.
DeviceArray<float> behind(const OnDevice& gpu, Index offset, const Flat& values) {
  auto there = gpu.room<float>(offset + static_cast<Index>(values.size()));
  copy(gpu.stream, there.data() + offset, values.data(), there.size() - offset);
  gpu.stream.wait();
  return there;
}

// The product on the device. The four matrices begin where the digits of `offsets`, to the base of four, say.
Matrix on_device(const OnDevice& gpu, const RandomProduct& product, Index offsets = 0) {
  const ChainProduct& p = product.p;
  const Index in_left = offsets % 4, in_right = offsets / 4 % 4, in_addend = offsets / 16 % 4,
              in_out = offsets / 64 % 4;
  const auto left = behind(gpu, in_left, product.left.flat()), right = behind(gpu, in_right, product.right.flat()),
             addend = behind(gpu, in_addend, product.addend.flat());
  auto out = behind(gpu, in_out, product.nothing_yet().flat());
  ChainProduct there = p;
  there.left = left.data() + in_left;
  there.right = right.data() + in_right;
  there.addend = p.addend == nullptr ? nullptr : addend.data() + in_addend;
  there.out = out.data() + in_out;
  gpu.kernels.product(gpu.stream, there);
  Matrix result(p.rows, p.cols);
  copy(gpu.stream, result.data(), static_cast<const float*>(there.out), result.size());
  gpu.stream.wait();
  return result;
}

void compare_products(Precision precision, Numbers numbers, std::uint32_t seeds, Index larger_by) {
  const OnDevice gpu;
  for (std::uint32_t seed = 0; seed < seeds; ++seed) {
    run_threads_in_order(seed / 3 % 3);  // every third product is symmetric
    CAPTURE(seed);
    RandomProduct product(seed, precision, numbers, larger_by);
    CAPTURE(shape_text(product.p.rows, product.p.cols));
    CAPTURE(product.p.depth);
    const Matrix expected = with_one_nan(product.computed(1, chain_kernel()));
    const Index offsets = seed % 2 == 0 ? 0 : seed * 37;
    REQUIRE(same_bits(with_one_nan(on_device(gpu, product, offsets)), expected));
  }
}

std::vector<float> random_floats(std::mt19937& random, Index count, bool special = false) {
  RandomNumbers number = {random, special ? Numbers::special : Numbers::ordinary};
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = number();
  return values;
}

bool same_bytes(const Flat& left, const std::vector<float>& right) {
  return left.size() == right.size() && std::memcmp(left.data(), right.data(), left.size() * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("kernels: chain products of any shape and options: the CPU's, bit for bit") {
  compare_products(Precision::fp32, Numbers::ordinary, 60, 0);
  compare_products(Precision::bf16, Numbers::ordinary, 60, 0);
  // Over several tiles.
  compare_products(Precision::fp32, Numbers::ordinary, 14, 130);
  compare_products(Precision::bf16, Numbers::ordinary, 14, 130);
  compare_products(Precision::fp32, Numbers::ordinary, 4, 500);
}

TEST_CASE("kernels: chain products of zeros, subnormals and infinities: flushed in bf16 as the CPU does, else not") {
  compare_products(Precision::fp32, Numbers::special, 40, 0);
  compare_products(Precision::bf16, Numbers::special, 100, 0);
}

TEST_CASE(
    "kernels: a product of parts of matrices, of a left factor that is to be transposed, or in tiles, is refused") {
  const OnDevice gpu;
  const RandomProduct product(1, Precision::fp32, Numbers::ordinary, 0);
  const auto refused = [&](Index ChainProduct::*row) {
    ChainProduct part = product.p;
    part.*row = part.depth + part.cols;
    CHECK_THROWS_WITH_AS(gpu.kernels.product(gpu.stream, part),
                         "a product on a GPU takes whole matrices, the left one as it is", std::invalid_argument);
  };
  for (const auto row : {&ChainProduct::left_row, &ChainProduct::right_row, &ChainProduct::out_row}) refused(row);
  ChainProduct transposed = product.p;
  transposed.left_transposed = true;
  CHECK_THROWS_WITH_AS(gpu.kernels.product(gpu.stream, transposed),
                       "a product on a GPU takes whole matrices, the left one as it is", std::invalid_argument);
  ChainProduct in_tiles = product.p;
  in_tiles.precision = Precision::bf16, in_tiles.in_tiles = true;
  CHECK_THROWS_WITH_AS(gpu.kernels.product(gpu.stream, in_tiles),
                       "a product on a GPU is added as a chain, not in tiles; take Products::chain",
                       std::invalid_argument);
  transposed.rows = 0;
  CHECK_NOTHROW(gpu.kernels.product(gpu.stream, transposed));  // nothing is to be done
}

TEST_CASE("kernels: bf16 flushes what is below 2⁻¹²⁶ after rounding to 24 bits, wherever in a chain it comes up") {
  const OnDevice gpu;
  for (const Index before : {0, 2, 14, 16, 30, 32, 40}) {
    for (const bool stays : {false, true}) {
      RandomProduct product(1, Precision::bf16, Numbers::ordinary);
      product.left = Matrix(1, before + 2);
      product.right = Matrix(before + 2, 1);
      product.left(0, before) = std::ldexp(stays ? 0.9921875f : 1.0078125f, -75);
      product.left(0, before + 1) = std::ldexp(1.0f, -63);
      product.right(before, 0) = -std::ldexp(1.0f, -76);
      product.right(before + 1, 0) = std::ldexp(1.0f, -63);
      product.p = ChainProduct();
      product.p.rows = product.p.cols = 1;
      product.p.depth = before + 2;
      product.p.precision = Precision::bf16;
      const Matrix result = on_device(gpu, product);
      CHECK(result(0, 0) == (stays ? std::ldexp(1.0f, -126) : 0.0f));
    }
  }
}

TEST_CASE("kernels: bf16 flushes a sum that small numbers have made finer, also long after the last of them") {
  // 2⁻¹¹⁰ + 2⁻¹³³ − 2⁻¹¹⁰: what is left is subnormal, and the number that brings it up is not small.
  const OnDevice gpu;
  for (const Index between : {0, 12, 14, 30, 62}) {
    RandomProduct product(1, Precision::bf16, Numbers::ordinary);
    const Index depth = 4 + between;
    product.left = Matrix(1, depth);
    product.right = Matrix(depth, 1);
    const auto set = [&](Index k, int left, int right, float sign) {
      product.left(0, k) = sign * std::ldexp(1.0f, left);
      product.right(k, 0) = std::ldexp(1.0f, right);
    };
    set(0, -66, -67, 1);
    set(1, -55, -55, 1);
    set(depth - 1, -55, -55, -1);
    product.p = ChainProduct();
    product.p.rows = product.p.cols = 1;
    product.p.depth = depth;
    product.p.precision = Precision::bf16;
    product.p.left = product.left.data();
    product.p.right = product.right.data();
    CAPTURE(depth);
    CHECK(same_bits(product.computed(1, chain_kernel()), Matrix(1, 1)));
    CHECK(same_bits(on_device(gpu, product), Matrix(1, 1)));
  }
}

TEST_CASE("kernels: transpose, scaling and bfloat16 of any size: the CPU's, bit for bit") {
  const OnDevice gpu;
  std::mt19937 random(7);
  for (int i = 0; i < 40; ++i) {
    run_threads_in_order(static_cast<unsigned>(i % 3));
    const Index rows = static_cast<Index>(random() % 70), cols = static_cast<Index>(random() % 70);
    Matrix x(rows, cols);
    RandomNumbers number = {random, i % 2 ? Numbers::special : Numbers::ordinary};
    for (float& value : x.flat()) value = number();
    CAPTURE(shape_text(rows, cols));
    const auto there = gpu.uploaded(x.flat());
    auto out = gpu.room<float>(x.size());
    gpu.kernels.transpose(gpu.stream, there.data(), rows, cols, out.data());
    CHECK(same_bits(Matrix(cols, rows, gpu.downloaded(out)), x.transposed()));

    gpu.kernels.scale_to_bf16(gpu.stream, 2.0315f, there.data(), x.size(), out.data());
    Matrix scaled = x;
    for (float& value : scaled.flat()) value = nearest_bf16(2.0315f * value);
    CHECK(same_bits(with_one_nan(Matrix(rows, cols, gpu.downloaded(out))), with_one_nan(scaled)));

    FlatOf<bfloat16> narrow(static_cast<std::size_t>(x.size()));
    to_bf16(x.data(), x.size(), narrow.data());
    auto narrow_there = gpu.room<bfloat16>(x.size());
    gpu.kernels.to_bf16(gpu.stream, there.data(), x.size(), narrow_there.data());
    gpu.kernels.from_bf16(gpu.stream, narrow_there.data(), x.size(), out.data());
    Matrix widened(rows, cols);
    from_bf16(narrow.data(), x.size(), widened.data());
    CHECK(same_bits(Matrix(rows, cols, gpu.downloaded(out)), widened));
  }
}

TEST_CASE("kernels: the norm's sum of any number of squares, in the CPU's order, bit for bit") {
  const OnDevice gpu;
  std::mt19937 random(8);
  for (const Index count :
       {0, 1, 15, 16, 17, 1023, 1024, 1025, 1040, 3 * 1024, 5 * 1024 + 3, 16 * 1024, 17 * 1024 + 77, 1100 * 1024 + 5}) {
    run_threads_in_order(static_cast<unsigned>(random() % 3));
    CAPTURE(count);
    const std::vector<float> values = random_floats(random, count);
    const auto there = gpu.uploaded(values);
    REQUIRE(Kernels::sum_of_squares_room(count) >= 1);
    auto room = gpu.room<double>(Kernels::sum_of_squares_room(count));
    gpu.kernels.sum_of_squares(gpu.stream, there.data(), count, room.data());
    const double expected = pairwise_sum_of_squares(values.data(), count);
    CHECK(std::memcmp(&gpu.downloaded(room)[0], &expected, sizeof(double)) == 0);
  }
}

TEST_CASE("kernels: the journey's elementwise start and end: the CPU's, bit for bit") {
  const OnDevice gpu;
  std::mt19937 random(9);
  for (int i = 0; i < 12; ++i) {
    run_threads_in_order(static_cast<unsigned>(i % 3));
    const Index count = i == 0 ? 0 : i == 1 ? 1200000 : static_cast<Index>(random() % 3000);
    MuonSettings settings;
    settings.nesterov = i % 2 == 0;
    settings.momentum = 0.9f + 0.001f * static_cast<float>(i);
    std::vector<float> gradient = random_floats(random, count), m = random_floats(random, count), update(m.size());
    std::vector<float> weights = random_floats(random, count), orthogonal = random_floats(random, count);

    const auto gradient_there = gpu.uploaded(gradient), orthogonal_there = gpu.uploaded(orthogonal);
    auto m_there = gpu.uploaded(m), update_there = gpu.room<float>(count), weights_there = gpu.uploaded(weights);
    gpu.kernels.momentum(gpu.stream, gradient_there.data(), m_there.data(), count,
                         static_cast<float>(settings.momentum), settings.nesterov, update_there.data());
    const Shape full{300, 700};
    gpu.kernels.apply(gpu.stream, weights_there.data(), orthogonal_there.data(), count,
                      1.0f - settings.lr * settings.weight_decay, update_scale(full, settings));

    momentum(gradient.data(), m.data(), count, settings, update.data());
    apply(weights.data(), orthogonal.data(), count, full, settings);
    CHECK(same_bytes(gpu.downloaded(m_there), m));
    CHECK(same_bytes(gpu.downloaded(update_there), update));
    CHECK(same_bytes(gpu.downloaded(weights_there), weights));
  }
}

TEST_CASE("kernels: the tree sum of any number of parts, also over one of them: the CPU's, bit for bit") {
  const OnDevice gpu;
  std::mt19937 random(10);
  for (std::size_t parts = 0; parts <= 448; parts += parts < 18 ? 1 : 43) {
    run_threads_in_order(static_cast<unsigned>(parts % 3));
    CAPTURE(parts);
    const Index count = static_cast<Index>(random() % 600);
    std::vector<std::vector<float>> values;
    std::vector<DeviceArray<float>> there;
    std::vector<FlatOf<bfloat16>> narrow;
    std::vector<DeviceArray<bfloat16>> narrow_there;
    std::vector<const float*> here_parts, there_parts;
    std::vector<const bfloat16*> narrow_parts, narrow_there_parts;
    for (std::size_t i = 0; i < parts; ++i) {
      values.push_back(random_floats(random, count));
      narrow.emplace_back(static_cast<std::size_t>(count));
      to_bf16(values[i].data(), count, narrow[i].data());
      there.push_back(gpu.uploaded(values[i]));
      narrow_there.push_back(gpu.uploaded(narrow[i]));
    }
    for (std::size_t i = 0; i < parts; ++i) {
      here_parts.push_back(values[i].data());
      there_parts.push_back(there[i].data());
      narrow_parts.push_back(narrow[i].data());
      narrow_there_parts.push_back(narrow_there[i].data());
    }
    std::vector<float> sum(static_cast<std::size_t>(count));
    FlatOf<bfloat16> narrow_sum(static_cast<std::size_t>(count));
    tree_sum(here_parts, count, sum.data());
    if (parts > 0) tree_sum(narrow_parts, count, narrow_sum.data());

    auto out = gpu.room<float>(count);
    auto narrow_out = gpu.room<bfloat16>(count);
    gpu.kernels.tree_sum(gpu.stream, there_parts, count, out.data());
    gpu.kernels.tree_sum(gpu.stream, narrow_there_parts, count, narrow_out.data());
    CHECK(same_bytes(gpu.downloaded(out), sum));
    CHECK(std::memcmp(gpu.downloaded(narrow_out).data(), narrow_sum.data(), narrow_sum.size() * 2) == 0);
    if (parts == 0) continue;
    DeviceArray<float>& over = there[parts / 2];
    gpu.kernels.tree_sum(gpu.stream, there_parts, count, over.data());
    CHECK(same_bytes(gpu.downloaded(over), sum));
  }
  const std::vector<const float*> too_many(449, nullptr);
  CHECK_THROWS_WITH_AS(gpu.kernels.tree_sum(gpu.stream, too_many, 1, nullptr),
                       "the GPU's tree adds at most 448 parts at a time, and these are 449", std::invalid_argument);
}
