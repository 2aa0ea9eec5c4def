#pragma once

#include <string>
#include <vector>

#include "src/layout/element_address.hpp"

namespace muonwalk {

// The running example of lessons 03 to 08: a transformer layer that is small enough to write down whole, and one
// element of it that is followed from address to address.

/// Its four matrices: q 4×3, up 8×3, o 3×4 and down 3×8. Its width is 3, its attention has 4 channels, its feed-forward
/// layer 8. TP cuts the first two by rows and the last two by columns, as Megatron-LM does; 1, 2 and 4 are sizes of TP
/// that divide them.
std::vector<Parameter> small_layer();

/// How they are packed: every matrix begins at a multiple of 4 elements, a bucket's size is a multiple of 8, and a
/// bucket closes at 32 / tp elements. With tp up to 4, q and up make up the first bucket, o and down the second.
/// With dp 2 and tp 2 both kinds of padding are there, `up` and `down` lie on two DP ranks, and `up` is cut within a
/// row.
LayoutOptions small_layer_options(int tp);

/// The number that stands at (row, col) of its matrix number `parameter`: 100 · (parameter + 1) + 10 · row + col. So a
/// number says where it belongs: 416 is in `down`, row 1, column 6.
float small_layer_number(int parameter, Index row, Index col);

/// The whole matrix of these numbers.
Matrix small_layer_matrix(int parameter);

/// The marked element, row 1, column 6 of `down`: in the second bucket, and with dp 2 and tp 2 on the second rank of
/// either group, so that no two of its addresses are equal. Throws std::out_of_range when the layout has no `down`.
ElementAddress marked_element(const Layout& layout);

/// A line about the marked element: what really stands at an address, and which one that is.
/// @{
/// "★ down[1,6] = 416 at element 14 of bucket 1", the number being flat[14].
std::string marked_text(const Flat& flat, Index element, const std::string& of);
/// "★ down[1,6] = 416 at row 1, column 2 of my slice"; where the matrix has no such element, the line says so.
std::string marked_text(const Matrix& matrix, Index row, Index col, const std::string& of);
/// @}

}  // namespace muonwalk
