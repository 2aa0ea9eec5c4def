#include <fmt/format.h>

#include <cmath>

#include "docs/figures/data/figure.hpp"
#include "lesson_06_newton_schulz.hpp"
#include "src/numerics/newton_schulz.hpp"

namespace muonwalk {
namespace {

using nlohmann::json;

constexpr int kSteps = 5;
constexpr double kWidest = 1.3;  // the curve is drawn up to here; beyond about 1.27 the iteration runs away
constexpr int kPoints = 105;     // of a curve
constexpr int kStarts = 49;      // of the slider: from 1 down to 1/1000, each the same factor below the one before

double applied(const Quintic& quintic, double sigma) {
  const double square = sigma * sigma;
  return sigma * (double(quintic.a) + square * (double(quintic.b) + square * double(quintic.c)));
}

// What becomes of one singular value: the start, and after each step.
std::vector<double> path(const Quintic& quintic, double sigma) {
  std::vector<double> values = {sigma};
  for (int step = 0; step < kSteps; ++step) values.push_back(applied(quintic, values.back()));
  return values;
}

// σ number k is uₖᵀ X vₖ, as the lesson's own table has it: of the lesson's update, in floating point.
std::vector<std::vector<double>> seen(const NewtonSchulzSettings& settings) {
  const Shape shape = lesson_06::kShape;
  std::vector<std::vector<double>> values(static_cast<std::size_t>(shape.rows));
  const auto look = [&](int, const Matrix& x) {
    for (Index k = 0; k < shape.rows; ++k) {
      double sigma = 0;
      for (Index at = 0; at < x.size(); ++at)
        sigma += lesson_06::u(at / shape.cols, k) * double(x.flat()[static_cast<std::size_t>(at)]) *
                 lesson_06::v(k, at % shape.cols);
      values[static_cast<std::size_t>(k)].push_back(sigma / lesson_06::kLengths);
    }
  };
  newton_schulz(lesson_06::with_singular_values(lesson_06::far_apart()), settings, "down", look);
  return values;
}

// Five digits after the point: a figure shows three.
json rounded(const std::vector<double>& values) {
  json all = json::array();
  for (const double value : values) all.push_back(std::round(value * 1e5) / 1e5);
  return all;
}

// "3.4445 σ − 4.7750 σ³ + 2.0315 σ⁵".
std::string formula(const Quintic& quintic) {
  std::string text = fmt::format("{:.4f} σ", quintic.a);
  if (quintic.b != 0) text += fmt::format(" {} {:.4f} σ³", quintic.b < 0 ? "−" : "+", std::abs(quintic.b));
  if (quintic.c != 0) text += fmt::format(" {} {:.4f} σ⁵", quintic.c < 0 ? "−" : "+", std::abs(quintic.c));
  return text;
}

// A set of coefficients: its curve, what became of the lesson's update, and of every place of the slider.
json coefficients(const std::string& name, const Quintic& quintic, Precision precision) {
  NewtonSchulzSettings settings;
  settings.quintic = quintic;
  settings.precision = precision;
  json set = {{"name", name}, {"formula", formula(quintic)}};
  std::vector<double> curve;
  for (int i = 0; i < kPoints; ++i) curve.push_back(applied(quintic, kWidest * i / (kPoints - 1)));
  set["curve"] = rounded(curve);
  for (const std::vector<double>& values : seen(settings)) set["seen"].push_back(rounded(values));
  for (int i = 0; i < kStarts; ++i)
    set["paths"].push_back(rounded(path(quintic, std::pow(10.0, -3.0 * i / (kStarts - 1)))));
  return set;
}

}  // namespace

json singular_values_figure() {
  const Quintic muon, textbook = {1.5F, -0.5F, 0.0F};  // as the planted bug `cubic` has it
  return {{"kind", "singular_values"},
          {"widest", kWidest},
          {"sets",
           {coefficients("Muon's quintic, float32", muon, Precision::fp32),
            coefficients("Muon's quintic, bfloat16", muon, Precision::bf16),
            coefficients("the textbook's cubic (--bug cubic)", textbook, Precision::fp32)}}};
}

}  // namespace muonwalk
