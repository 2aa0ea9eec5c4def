#include "sim/lesson_12/distances.hpp"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

#include "src/numerics/philox.hpp"
#include "src/numerics/tree_sum.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

// The width of a label at the left edge of what a lesson prints.
constexpr int kLabelWidth = 8;

// Gradients of tables have tensor numbers that no other gradient has.
constexpr std::uint64_t kFirstNoise = std::uint64_t{1} << 62;

}  // namespace

double rms_of(const Matrix& x) { return x.empty() ? 0 : frobenius_norm(x) / std::sqrt(static_cast<double>(x.size())); }

double distance(const Matrix& x, const Matrix& y) {
  if (x.rows() != y.rows() || x.cols() != y.cols())
    throw std::invalid_argument(fmt::format("a matrix of {} has no distance from one of {}; they need one shape",
                                            shape_text(x.rows(), x.cols()), shape_text(y.rows(), y.cols())));
  double squares = 0;
  for (Index i = 0; i < x.size(); ++i) {
    const double difference = static_cast<double>(x.data()[i]) - static_cast<double>(y.data()[i]);
    squares += difference * difference;
  }
  return std::sqrt(squares);
}

Matrix noise(Shape shape, std::uint64_t seed, int step) {
  return random_matrix({seed, kFirstNoise + static_cast<std::uint64_t>(step)}, shape.rows, shape.cols);
}

MuonSettings for_tables(MuonSettings settings) {
  settings.products = Products::chain;
  settings.threads = 1;
  return settings;
}

std::string relative_text(double relative) {
  constexpr double kLastBits = 1e-5;
  if (relative == 0) return "same bits";
  if (relative < kLastBits) return "last bits";
  const double percent = 100 * relative;
  return percent < 1 ? fmt::format("{:.2g} %", percent) : fmt::format("{:.{}f} %", percent, percent < 10 ? 1 : 0);
}

std::string labelled(const std::string& label, const std::vector<std::string>& lines) {
  std::string text = pad_right(label, kLabelWidth);
  for (std::size_t i = 0; i < lines.size(); ++i) text += (i > 0 ? "\n" + std::string(kLabelWidth, ' ') : "") + lines[i];
  return text;
}

}  // namespace muonwalk::sim
