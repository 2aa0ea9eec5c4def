#include "sim/lesson_21/machine.hpp"

#include <fmt/format.h>

#include <cmath>

#include "sim/cost_model/cluster.hpp"
#include "src/numerics/newton_schulz.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

// The products of the largest matrix of the lesson, 32 × 32: three in each of five steps.
const double kProductFlops = newton_schulz_flops(32, 32) / 15;

}  // namespace

Machine laptop() {
  const Cluster cluster = cluster_of("laptop");
  const NetworkLevel& loopback = cluster.levels.front();
  const Accelerator& core = cluster.accelerator;
  const double efficiency = core.product_efficiency.measured() ? core.product_efficiency.at(kProductFlops).value : 1;
  return {loopback.latency_seconds, 1 / loopback.bytes_per_second, 1 / (core.flops_per_second * efficiency)};
}

double seconds_of(const Counts& counts, const Machine& machine) {
  return counts.messages * machine.seconds_per_message + counts.bytes * machine.seconds_per_byte +
         counts.flops * machine.seconds_per_flop;
}

Matrix row_of(const Counts& counts) {
  return Matrix(1, 3, Flat{float(counts.messages), float(counts.bytes), float(counts.flops)});
}

Counts counts_from(const Matrix& row) { return {double(row(0, 0)), double(row(0, 1)), double(row(0, 2))}; }

std::string counts_text(const Counts& counts) {
  return fmt::format("{}, {}, {} FLOP", count_text(std::llround(counts.messages), "message"),
                     bytes_text(std::llround(counts.bytes)), number_text(std::llround(counts.flops)));
}

}  // namespace muonwalk::sim
