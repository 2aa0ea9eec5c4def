// # The RMS of matrices that nobody has
//
// Given what I own of some matrices, return the root mean square of each whole matrix.
//
//     mine     one flat array per matrix: the elements that I own of it, perhaps none. Each element has one owner
//     sizes    the elements of each matrix, those of all ranks together
//     ranks    all ranks, each of which calls this
//     returns  one number per matrix, the same on every rank
//
// What is within a hundred-thousandth of the right number counts as equal. Make one all-reduce, of one number per
// matrix, and hold no more than those numbers.
#pragma once

#include <vector>

#include "src/comm/communicator.hpp"

namespace muonwalk {

using MonitorRms = Flat(const std::vector<Flat>& mine, const std::vector<Index>& sizes, Communicator& ranks);

}  // namespace muonwalk
