#pragma once

#include <vector>

#include "src/layout/buffer.hpp"

namespace muonwalk {

/// What a layout means for Muon, if matrices that lie on one DP rank stay there, and each owner of a part of a cut one
/// gets the rest of it and orthogonalizes all of it. Indexed by DP rank; the ranks of a TP group are alike. Worked out
/// from where the cuts are, without a plan for each rank, so in milliseconds for a cluster's worth of ranks.
struct Sharding {
  int matrices = 0;
  int cut = 0;                  ///< The matrices with more than one owner in dp.
  double flops_once = 0;        ///< The FLOPs of Newton–Schulz, each matrix once.
  std::vector<Index> elements;  ///< The elements of TP slices that a rank owns, without padding.
  std::vector<Index> gathered;  ///< The elements that come to a rank to make its cut slices whole.
  std::vector<double> flops;    ///< The FLOPs of all matrices of which a rank owns an element.

  /// All ranks' Newton–Schulz over that of one process; at least the size of TP.
  double redundancy(int tp) const;
  /// The Newton–Schulz of the rank that has most of it over an equal share for each DP rank of what has to be done
  /// once: how much longer than need be it takes.
  double slowdown() const;
};

/// What a layout means with `steps` steps of Newton–Schulz.
Sharding sharding_of(const Layout& layout, int steps = 5);

/// Two layouts at once, where experts are dealt out to `ep` ranks (expert parallelism): consecutive DP ranks are an EP
/// group and hold different experts, equally many of the same shapes, so an expert has only dp / ep DP ranks to be
/// shared out among. `others` is of what all DP ranks hold, `experts` of those of one rank of an EP group, over dp / ep
/// ranks. Throws std::invalid_argument where the ranks of `experts` don't divide those of `others`.
Sharding with_experts(Sharding others, const Sharding& experts);

/// The largest of the loads over their mean; 1: all are equal.
/// @{
double most_over_mean(const std::vector<double>& loads);
double most_over_mean(const std::vector<Index>& loads);
/// @}

}  // namespace muonwalk
