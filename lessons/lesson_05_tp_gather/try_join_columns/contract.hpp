// # Join slices of columns
//
// Given the column slices of all tp ranks, one after the other as the all-gather leaves them, return the whole matrix.
//
//     gathered   tp · slice.rows · slice.cols elements: slice 0, row by row, then slice 1, and so on
//     slice      the shape of one slice: rows × (cols / tp)
//     tp         how many slices there are
//     returns    rows × cols
//
// Nothing is sent. Hold no more than the matrix that you return, besides what you are given.
#pragma once

#include "src/layout/slicing.hpp"

namespace muonwalk {

using JoinColumns = Matrix(const Flat& gathered, Shape slice, int tp);

}  // namespace muonwalk
