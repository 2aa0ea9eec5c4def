#pragma once

#include <string>
#include <vector>

#include "src/layout/buffer.hpp"

namespace muonwalk {

/// One element of a parameter, and every address that it has between the whole matrix and the DP shard that owns it.
struct ElementAddress {
  std::string parameter;
  Index row = 0, col = 0;  ///< Of the whole matrix.

  int tp_rank = -1;  ///< The TP rank whose slice holds it; −1 where every TP rank holds all of the parameter.
  Index slice_row = 0, slice_col = 0;  ///< Of that TP slice.
  Index slice_element = 0;             ///< Of the slice, flattened: slice_row · columns of the slice + slice_col.

  int buffer_idx = 0;        ///< The aisle.
  Index buffer_element = 0;  ///< Of that buffer: the start of the parameter's global_range + slice_element.

  int bucket_idx = 0;        ///< The pallet.
  Index bucket_element = 0;  ///< Of that bucket: buffer_element − the start of the bucket.

  int dp_rank = 0;          ///< The DP rank that owns it.
  Index shard_element = 0;  ///< Of that rank's shard of the bucket: buffer_element − the start of the shard.

  /// Whether a rank with these coordinates has the TP slice that holds the element, and whether it owns the element.
  /// @{
  bool in_slice_of(const Place& place) const { return tp_rank == -1 || tp_rank == place.tp; }
  bool owned_by(const Place& place) const { return in_slice_of(place) && dp_rank == place.dp; }
  /// @}
};

/// Where element (row, col) of the whole matrix `parameter` lies. Throws std::out_of_range when the layout has no such
/// parameter, or the parameter no such element.
ElementAddress address_of(const Layout& layout, const std::string& parameter, Index row, Index col);

/// The address as five lines, one per coordinate of `dist_meta`, each with the sum that leads to the next element:
///
///     1  shape         3 × 4  tp 1, row 1, column 2: element 1 · 4 + 2 = 6 of the slice
///     2  buffer_idx    0      the buffer of parameter group 0
///     3  global_range  32–43  element 32 + 6 = 38 of the buffer
///     4  bucket_idx    1      it begins at 24: element 38 − 24 = 14 of the bucket
///     5  local_range   0–7    dp 1, whose shard begins at 36: element 38 − 36 = 2 of the shard
///
/// Throws std::out_of_range when the layout is not the one that the address was made for.
std::string address_text(const Layout& layout, const ElementAddress& address);

// The running example of lessons 03 to 08: a transformer layer that is small enough to write down whole, and one
// element of it that is followed from address to address.

/// Its four matrices: q 4×3, up 8×3, o 3×4 and down 3×8. Its width is 3, its attention has 4 channels, its feed-forward
/// layer 8. TP cuts the first two by rows and the last two by columns, as Megatron-LM does; 1, 2 and 4 are sizes of TP
/// that divide them.
std::vector<Parameter> small_layer();

/// How they are packed: every matrix begins at a multiple of 4 elements, a bucket's size is a multiple of 8, and a
/// bucket closes at 32 / tp elements. With tp up to 4, q and up make up the first bucket, o and down the second.
/// With dp 2 and tp 2 both kinds of padding are there, `up` and `down` lie on two DP ranks, and `up` is cut mid-row.
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
