// # The bytes of a step
//
// Say how many bytes one rank sends in a step of Muon, from the layout alone: with gradients and weights in float32,
// and with updates gathered in elements of `gathered` bytes.
//
//     layout    who owns what: `layout.buffers[b].buckets[k]`, and `layout.dp_counts(b, k)` says how many elements of
//               that bucket each DP rank owns
//     place     this rank's place: `place.dp`; `layout.grid` knows dp() and tp()
//     gathered  bytes of an element in the DP gather and the TP gather: 2 or 4
//     returns   the sum over all moves: gradients, DP gather, TP gathers, and new weights
//
// A rank that owns an element of a matrix takes part in its TP gather; `layout.owned_range(meta, place.dp)` is empty
// for one that does not. Nothing is sent, and no matrix is held.
#pragma once

#include "src/layout/buffer.hpp"

namespace muonwalk {

using BytesOfAStep = Index(const Layout& layout, const Place& place, int gathered);

}  // namespace muonwalk
