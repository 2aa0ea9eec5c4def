// # Add pieces in a fixed order
//
// Given one piece of each rank, return their sum, element by element, added as a balanced tree in rank order.
//
//     pieces     one piece per rank, in rank order, all of them of one length; at least one
//     returns    as many elements as one piece has
//
// Level by level, neighbours are added, and an odd one at the end is carried to the next level. For seven pieces:
// ((0 + 1) + (2 + 3)) + ((4 + 5) + 6). The order decides the bits, and the bits are compared. Nothing is sent. Besides
// what you are given, hold no more than a copy of all pieces and one piece more.
#pragma once

#include <vector>

#include "src/numerics/matrix.hpp"

namespace muonwalk {

using SumPieces = Flat(const std::vector<Flat>& pieces);

}  // namespace muonwalk
