#pragma once

#include "src/numerics/bfloat16.hpp"

namespace muonwalk {

/// out = addend_scale · addend + (left_scale · left) · right, all row-major, `out` apart from the others, or the same
/// as `addend`, in fp32. A factor or the result may be some columns of a larger matrix: then its rows do not follow
/// each other, and the product says how far apart they begin.
///
/// In fp32 every element is one chain of fused multiply-adds in the order of k:
///
///     sum = addend_scale · addend(i, j);  for k = 0, 1, …: sum = fma(left_scale · left(i, k), right(k, j), sum)
///
/// In bf16 the factors hold bfloat16 numbers, the chain starts from zero and takes them in pairs, the second of a pair
/// first, as the instruction vdpbf16ps does (Intel 64 and IA-32 Architectures Software Developer's Manual, VDPBF16PS):
///
///     sum = 0;  for j = 0, 1, …: for k = 2j + 1, then k = 2j: sum = fma(left(i, k), right(k, j), sum)
///     out = bf16(bf16(addend_scale · addend(i, j)) + bf16(sum)), without an addend bf16(sum)
///
/// where a zero fills up an odd depth, and where, as in that instruction, a subnormal number counts as a zero of its
/// sign: as a factor, and as what comes out of a step. (A step's result is subnormal when, rounded to 24 bits as if
/// exponents had no end, it is below 2⁻¹²⁶.)
///
/// In tiles, the other order of bf16, a sum grows by 32 steps at once, as the instruction tdpbf16ps does (the same
/// manual, TDPBF16PS), with two chains that begin at zero, and with zeros that fill up the depth to a multiple of 32:
///
///     sum = 0;  for j = 0, 1, …: even = odd = 0
///                                for k = 32j, 32j + 2, … 32j + 30: even = fma(left(i, k), right(k, j), even)
///                                for k = 32j + 1, 32j + 3, … 32j + 31: odd = fma(left(i, k), right(k, j), odd)
///                                sum = sum + (even + odd)
///
/// Nothing else decides the bits: not the shape around an element, nor the tile it falls into, nor the thread or the
/// kind of processor that computes it.
struct ChainProduct {
  Index rows = 0, cols = 0;
  Index depth = 0;  ///< Columns of left, rows of right.

  const float* left = nullptr;    ///< Is rows × depth, or depth × rows where left_transposed.
  bool left_transposed = false;   ///< Multiply leftᵀ; in fp32 alone.
  float left_scale = 1;           ///< A factor of each element of left; 1 in bf16.
  const float* right = nullptr;   ///< Is depth × cols, or cols × depth where right_transposed.
  bool right_transposed = false;  ///< Multiply by rightᵀ.
  const float* addend = nullptr;  ///< Is rows × cols, or null for zeros.
  float addend_scale = 1;         ///< A factor of each element of addend.
  float* out = nullptr;           ///< Is rows × cols.
  Index left_row = 0;             ///< Elements from a row of left to the next; 0: its rows follow each other.
  Index right_row = 0;            ///< Elements from a row of right to the next; 0: its rows follow each other.
  Index out_row = 0;              ///< Elements from a row of out, and of addend, to the next; 0: rows follow each other
  bool leaves_sums = false;       ///< In bf16, without an addend: out is the sum, in float32.
  bool symmetric = false;         ///< Compute one half and mirror the other: rows = cols, and rows follow each other.
  Precision precision = Precision::fp32;  ///< Which of the two chains.
  bool in_tiles = false;                  ///< In bf16: as tiles add, not in pairs.
};

/// The code for one kind of processor that computes chains. All give the same bits.
struct ChainKernel {
  /// Computes the columns first … last − 1 of `out`; of a symmetric product the elements below the diagonal in them,
  /// and their mirror images. `left_room` and `right_room` are its working memory, aligned to 64 bytes.
  using Columns = void (*)(const ChainProduct& product, Index first, Index last, float* left_room, float* right_room);

  const char* name;  ///< "plain", "avx2", "avx512", "avx512_bf16" or "amx"
  Index panel_cols;  ///< Columns of `out` that are computed together.
  Columns fp32, bf16, tiles;
  Index left_room, right_room;  ///< Counted in floats.
};

}  // namespace muonwalk
