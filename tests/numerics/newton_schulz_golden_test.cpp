#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "src/numerics/newton_schulz.hpp"

using namespace muonwalk;

namespace {

struct GoldenCase {
  NewtonSchulzSettings settings;
  Matrix input;
  Matrix result;
};

Matrix read_matrix(std::istream& in, Index rows, Index cols) {
  Matrix x(rows, cols);
  for (float& value : x.flat()) {
    std::uint32_t bits = 0;
    in >> std::hex >> bits >> std::dec;
    std::memcpy(&value, &bits, sizeof(value));
  }
  return x;
}

GoldenCase read_case(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::string precision;
  Index rows = 0;
  Index cols = 0;
  GoldenCase golden;
  in >> precision >> rows >> cols >> golden.settings.steps;
  golden.settings.precision = precision == "bf16" ? Precision::bf16 : Precision::fp32;
  golden.input = read_matrix(in, rows, cols);
  golden.result = read_matrix(in, rows, cols);
  REQUIRE(in.good());
  return golden;
}

std::vector<std::filesystem::path> golden_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(MUONWALK_GOLDEN_DIR)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("newton_schulz_", 0) == 0) files.push_back(entry.path());
  }
  return files;
}

double distance(const Matrix& x, const Matrix& y) {
  double squares = 0;
  for (Index i = 0; i < x.size(); ++i) squares += std::pow(static_cast<double>(x.data()[i]) - y.data()[i], 2);
  return std::sqrt(squares);
}

double norm(const Matrix& x) { return distance(x, Matrix(x.rows(), x.cols())); }

}  // namespace

TEST_CASE(
    "newton_schulz: agrees with PyTorch, in float32 to its last digits and in bfloat16 to the roundings' spread") {
  // Another order of the sums, and nothing else, separates the two results. In float32 that is a few ULP, grown by up
  // to 3.4445⁵ = 485 in the direction of a small singular value. In bfloat16 a sum in another order sometimes rounds to
  // the other neighbour, 2⁻⁸ of it away, which later steps enlarge.
  const double fp32_tolerance = 485 * std::ldexp(1.0, -24);
  const double bf16_tolerance = 0.05;
  double worst_fp32 = 0;
  double worst_bf16 = 0;
  const auto files = golden_files();
  REQUIRE(files.size() == 18);
  for (const auto& file : files) {
    CAPTURE(file.filename().string());
    const GoldenCase golden = read_case(file);
    const Matrix result = newton_schulz(golden.input, golden.settings);
    const double difference = distance(result, golden.result) / norm(golden.result);
    if (golden.settings.precision == Precision::fp32) {
      CHECK(difference < fp32_tolerance);
      worst_fp32 = std::max(worst_fp32, difference);
    } else {
      CHECK(difference < bf16_tolerance);
      worst_bf16 = std::max(worst_bf16, difference);
    }
  }
  MESSAGE("largest relative difference: fp32 ", worst_fp32, ", bf16 ", worst_bf16);
}
