#pragma once

#include <string>
#include <vector>

#include "sim/ranks/options.hpp"
#include "tools/scale/cluster.hpp"
#include "tools/scale/measured_curve.hpp"

namespace muonwalk::sim {

struct JsonFile;

/// What messages cost over one transport while this number of ranks send to each other.
struct MessageCosts {
  int ranks = 0;
  /// Processor seconds of a message, by its bytes: what all ranks together spend on it, so that over all messages it
  /// adds up, whichever rank sent them.
  MeasuredCurve seconds;
};

/// What messages cost by the number of ranks: with more of them than cores they wait for each other to be woken. A
/// curve by bytes says more than an α and a β, because Gloo handles long messages differently.
struct TransportCosts {
  std::vector<MessageCosts> by_ranks;  ///< With rising ranks; at least one.

  /// Processor seconds of a message of `bytes` bytes among `ranks` ranks, interpolated over both, as logarithms.
  /// Outside of what was measured it is marked, and is that of the nearest number of ranks; of a message that is larger
  /// than all that were measured it grows with the bytes.
  CurveReading message_seconds(double ranks, double bytes) const;
};

/// How fast one core does Newton–Schulz, while all others do the same.
struct ProductRate {
  Products products = Products::eigen;
  Precision precision = Precision::fp32;
  /// FLOPs per second, as newton_schulz_flops counts them, without the time for new memory, by the FLOPs of one of its
  /// steps, which says how large the matrix is.
  MeasuredCurve flops_per_second;
};

/// What the parts of a step cost on one machine, as measure_machine measures it.
struct MachineCosts {
  std::string machine;                     ///< "AMD EPYC, 2 cores"
  int cores = 0;                           ///< Ranks share them.
  double memory_bytes = 0;                 ///< Memory of the whole machine.
  double memory_bytes_per_second = 0;      ///< One core in elementwise work, while all others do the same.
  double new_memory_bytes_per_second = 0;  ///< One core that clears new buffers, while all others do the same.
  TransportCosts gloo;                     ///< Ranks are processes, over the loopback.
  TransportCosts memory;                   ///< Ranks are threads.
  std::vector<ProductRate> newton_schulz;  ///< At least one.
  std::string source;                      ///< When these numbers were measured, and with what.

  /// The costs of a transport. Throws UsageError for NCCL, which is not measured.
  const TransportCosts& transport(TransportKind kind) const;
  /// The rates of an engine in a precision. Throws UsageError where they were not measured.
  const MeasuredCurve& rate(Products products, Precision precision) const;
};

/// Reads what machine_costs_json has written. Throws UsageError, one sentence that names file and field, as cluster_of
/// does.
MachineCosts read_machine_costs(const std::string& path);
/// The costs in a file that has been read.
MachineCosts machine_costs_from(const JsonFile& file);
/// The costs as the JSON text of a file.
std::string machine_costs_json(const MachineCosts& costs);

/// A cluster of such machines: a core stands in for an accelerator, with its best product rate and the link that two
/// ranks of the machine have over Gloo (α of the smallest message, and what each further byte costs up to the largest),
/// both from one machine to the next and inside of it. That second level is a
/// supposition, and its source says so.
Cluster cluster_of_machines(const MachineCosts& costs);

}  // namespace muonwalk::sim
