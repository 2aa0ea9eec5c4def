#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include "src/numerics/newton_schulz.hpp"
#include "tools/scale/machine_costs.hpp"

namespace muonwalk::sim {
namespace {

constexpr char kSource[] =
    "measured by muonwalk-scale on 2026-11-23: 2 cores of an AMD EPYC with AVX-512, a virtual machine";

constexpr std::array<double, 7> kBytes = {4, 1024, 4096, 16384, 65536, 262144, 2097152};
constexpr std::array<int, 6> kSides = {4,   16, 48, 160,
                                       448, 800};  // the smaller ones of matrices; the larger one is a quarter more

// What a message of each size costs among this number of ranks, in microseconds of processor time.
MessageCosts message(int ranks, const std::array<double, kBytes.size()>& microseconds) {
  std::vector<MeasuredCurve::Point> points;
  for (std::size_t i = 0; i < kBytes.size(); ++i) points.push_back({kBytes[i], microseconds[i] * 1e-6});
  return {ranks, MeasuredCurve("processor seconds of a message, by its bytes", std::move(points), kSource)};
}

// GFLOP/s of one core, for a matrix of each size.
ProductRate rate(Products products, Precision precision, const std::array<double, kSides.size()>& gigaflops) {
  std::vector<MeasuredCurve::Point> points;
  for (std::size_t i = 0; i < kSides.size(); ++i)
    points.push_back({newton_schulz_flops(kSides[i], kSides[i] + kSides[i] / 4, 1), gigaflops[i] * 1e9});
  return {
      products, precision,
      MeasuredCurve("FLOPs per second of Newton–Schulz, by the FLOPs of one of its steps", std::move(points), kSource)};
}

}  // namespace

MachineCosts epyc_vm_costs() {
  MachineCosts costs;
  costs.machine = "epyc-vm";
  costs.cores = 2;
  costs.memory_bytes = 23.54 * kGibibyte;
  costs.memory_bytes_per_second = 153.1 * kGigabyte;
  costs.new_memory_bytes_per_second = 169.8 * kGigabyte;
  costs.gloo.by_ranks = {message(2, {51.62, 53.62, 53.62, 81.2, 96.87, 141.7, 724.8}),
                         message(4, {38.66, 39.04, 43.55, 70.23, 71.53, 146.9, 841.8}),
                         message(8, {33.23, 41.28, 41.28, 70.41, 70.41, 123.3, 1132.0}),
                         message(16, {27.14, 27.14, 27.14, 69.97, 83.93, 83.93, 1026.0})};
  costs.memory.by_ranks = {message(2, {5.486, 5.486, 5.62, 5.877, 5.877, 16.84, 115.1}),
                           message(4, {1.997, 1.997, 2.079, 2.358, 3.727, 12.34, 74.0}),
                           message(8, {1.325, 1.395, 1.495, 1.666, 3.313, 5.554, 69.57}),
                           message(16, {0.6603, 0.6603, 0.7232, 0.8231, 1.785, 3.467, 92.69})};
  costs.newton_schulz = {rate(Products::eigen, Precision::fp32, {1.366, 39.05, 85.92, 128.6, 142.2, 135.7}),
                         rate(Products::eigen, Precision::bf16, {1.284, 24.48, 69.6, 108.3, 116.6, 113.2}),
                         rate(Products::chain, Precision::fp32, {1.175, 36.77, 184.9, 275.7, 317.0, 297.2}),
                         rate(Products::chain, Precision::bf16, {1.015, 32.89, 203.4, 374.2, 465.1, 442.5})};
  costs.source = kSource;
  return costs;
}

}  // namespace muonwalk::sim
