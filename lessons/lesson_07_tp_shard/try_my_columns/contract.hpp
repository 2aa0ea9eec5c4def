// # Cut out my columns
//
// Given the whole matrix, return the columns that belong to one TP rank.
//
//     whole      rows × cols
//     tp         the number of TP ranks; it divides cols
//     tp_rank    which of them: rank 0 has the first cols / tp columns
//     returns    rows × (cols / tp)
//
// Nothing is sent. Hold no more than the slice that you return, besides what you are given.
#pragma once

#include "src/numerics/matrix.hpp"

namespace muonwalk {

using MyColumns = Matrix(const Matrix& whole, int tp, int tp_rank);

}  // namespace muonwalk
