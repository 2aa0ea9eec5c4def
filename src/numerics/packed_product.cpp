#include "src/numerics/packed_product.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <new>
#include <utility>

#include "src/numerics/simd.hpp"

// How a product comes near the processor's peak (Goto and van de Geijn, "Anatomy of High-Performance Matrix
// Multiplication", 2008). A tile of sums stays in registers while k runs; every step of k loads one short row of the
// right factor and multiplies it by one number from each of the tile's rows. So that these loads hit the first-level
// cache, the right factor is copied ("packed") one panel at a time, block_depth × panel_cols, which all row tiles use
// before it is given up; and block_rows × block_depth of the left factor are copied so that they lie together in the
// second-level cache.

namespace muonwalk {

namespace {

constexpr int panel_vectors = 2;
constexpr Index panel_cols = panel_vectors * lanes;
// Sums of a tile, the panel's row and one number of the left factor share the registers: 14 · 2 + 2 + 1 of 32.
constexpr int tile_rows = simd_registers == 32 ? 14 : 6;
constexpr Index block_depth = 256;  // a panel of 32 KiB, half of a common first-level cache or a little more
constexpr Index block_rows = 72 * tile_rows;

// Unmetered working memory that a thread keeps from product to product: the meter counts what a rank holds.
struct Workspace {
  struct Release {
    void operator()(float* memory) const { ::operator delete (memory, std::align_val_t{64}); }
  };
  using Memory = std::unique_ptr<float, Release>;
  static Memory allocate(Index count) {
    return Memory(
        static_cast<float*>(::operator new (static_cast<std::size_t>(count) * sizeof(float), std::align_val_t{64})));
  }
  Memory left = allocate(block_rows * block_depth);   // rows at a distance of block_depth
  Memory right = allocate(block_depth * panel_cols);  // k-th row at k · panel_cols
};

Workspace& workspace() {
  thread_local Workspace memory;
  return memory;
}

// Where the sums of a tile start from, and where they go.
struct TileEnds {
  const float* start;
  Index start_stride;
  float start_scale;
  float* out;
  Index out_stride;
};

template <int rows, int vectors>
void tile(const float* left, const float* right, Index depth, const TileEnds& ends) {
  Lanes sums[rows][vectors];
  const Lanes scale = in_all_lanes(ends.start_scale);
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) sums[i][v] = scale * load_lanes(ends.start + i * ends.start_stride + v * lanes);
  }
#pragma GCC unroll 2
  for (Index k = 0; k < depth; ++k) {
    Lanes row[vectors];
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) row[v] = load_lanes(right + k * panel_cols + v * lanes);
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      const Lanes number = in_all_lanes(left[i * block_depth + k]);
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) sums[i][v] = multiply_add(number, row[v], sums[i][v]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) store_lanes(ends.out + i * ends.out_stride + v * lanes, sums[i][v]);
  }
}

using TileFunction = void (*)(const float*, const float*, Index, const TileEnds&);

struct TileTable {
  TileFunction of[tile_rows + 1][panel_vectors + 1];
};

template <std::size_t... i>
constexpr TileTable make_table(std::index_sequence<i...>) {
  return {{{nullptr, nullptr, nullptr}, {nullptr, tile<i + 1, 1>, tile<i + 1, 2>}...}};
}

constexpr TileTable table = make_table(std::make_index_sequence<tile_rows>());

// A tile at the right edge, narrower than its vectors, is computed in a full one aside.
void edge_tile(TileFunction function, Index rows, Index cols, const float* left, const float* right, Index depth,
               const TileEnds& ends) {
  alignas(64) float aside[tile_rows * panel_cols] = {};
  for (Index i = 0; i < rows; ++i) std::copy_n(ends.start + i * ends.start_stride, cols, aside + i * panel_cols);
  function(left, right, depth, {aside, panel_cols, ends.start_scale, aside, panel_cols});
  for (Index i = 0; i < rows; ++i) std::copy_n(aside + i * panel_cols, cols, ends.out + i * ends.out_stride);
}

// Asks for the next tile's sums while this one is computed. A row may begin in the middle of a cache line, hence its
// end.
void prefetch_tile(const float* start, Index rows, Index stride) {
  for (Index i = 0; i < rows; ++i, start += stride) {
    for (int v = 0; v < panel_vectors; ++v) __builtin_prefetch(start + v * lanes);
    __builtin_prefetch(start + panel_cols - 1);
  }
}

void pack_left(const PackedProduct& p, Index row, Index rows, Index k0, Index depth, float* packed) {
  for (Index i = 0; i < rows; ++i) {
    const float* from = p.left + (row + i) * p.depth + k0;
    float* to = packed + i * block_depth;
    if (p.left_scale == 1) {
      std::copy_n(from, depth, to);
    } else {
      for (Index k = 0; k < depth; ++k) to[k] = p.left_scale * from[k];
    }
  }
}

void pack_right(const PackedProduct& p, Index col, Index cols, Index k0, Index depth, float* packed) {
  const float* from = p.right + k0 * p.cols + col;
  for (Index k = 0; k < depth; ++k, from += p.cols, packed += panel_cols) {
    if (cols == panel_cols) {
      for (int v = 0; v < panel_vectors; ++v) store_lanes(packed + v * lanes, load_lanes(from + v * lanes));
    } else {
      std::copy_n(from, cols, packed);
      std::fill_n(packed + cols, panel_cols - cols, 0.0f);
    }
  }
}

void pack_right_transposed(const PackedProduct& p, Index col, Index cols, Index k0, Index depth, float* packed) {
  for (Index j = 0; j < cols; j += lanes) {
    for (Index k = 0; k < depth; k += lanes) {
      const float* from = p.right + (col + j) * p.depth + k0 + k;
      const Index high = std::min<Index>(lanes, cols - j);
      const Index wide = std::min<Index>(lanes, depth - k);
      if (high == lanes && wide == lanes) {
        transpose_block(from, p.depth, packed + k * panel_cols + j, panel_cols);
      } else {
        // At the edges, a block padded with zeros. The panel has room for its last rows: block_depth is whole blocks.
        alignas(64) float aside[lanes * lanes] = {};
        for (Index i = 0; i < high; ++i) std::copy_n(from + i * p.depth, wide, aside + i * lanes);
        transpose_block(aside, lanes, packed + k * panel_cols + j, panel_cols);
      }
    }
  }
}

// The sums start from the addend, or from zero, in the first block of k and from what is there already in the others.
TileEnds tile_ends(const PackedProduct& p, Index row, Index col, bool first_block) {
  alignas(64) static constexpr float zeros[panel_cols] = {};
  const Index offset = row * p.cols + col;
  TileEnds ends{p.out + offset, p.cols, 1.0f, p.out + offset, p.cols};
  if (first_block && p.addend) {
    ends.start = p.addend + offset;
    ends.start_scale = p.addend_scale;
  } else if (first_block) {
    ends.start = zeros;
    ends.start_stride = 0;
  }
  return ends;
}

// The tiles of one panel, from `row` down to `bottom`, nearly equal in height because a low tile wastes the processor.
void compute_panel(const PackedProduct& p, Index row, Index bottom, Index col, Index cols, const float* left,
                   const float* right, Index depth, bool first_block) {
  const int vectors = cols > lanes ? 2 : 1;
  for (Index tiles = (bottom - row + tile_rows - 1) / tile_rows; tiles > 0; --tiles) {
    const Index rows = (bottom - row + tiles - 1) / tiles;
    const TileEnds ends = tile_ends(p, row, col, first_block);
    if (tiles > 1) prefetch_tile(ends.start + rows * ends.start_stride, rows, ends.start_stride);
    const TileFunction function = table.of[rows][vectors];
    if (cols == vectors * lanes) {
      function(left, right, depth, ends);
    } else {
      edge_tile(function, rows, cols, left, right, depth, ends);
    }
    row += rows;
    left += rows * block_depth;
  }
}

// The output's columns first_col … last_col − 1; of a symmetric one only the rows at and below the diagonal.
void compute_columns(const PackedProduct& p, Index first_col, Index last_col) {
  float* const left = workspace().left.get();
  float* const right = workspace().right.get();
  const Index depth_blocks = std::max<Index>(1, (p.depth + block_depth - 1) / block_depth);
  for (Index top = p.symmetric ? first_col : 0; top < p.rows; top += block_rows) {
    const Index bottom = std::min(top + block_rows, p.rows);
    for (Index block = 0; block < depth_blocks; ++block) {
      const Index k0 = p.depth * block / depth_blocks;
      const Index depth = p.depth * (block + 1) / depth_blocks - k0;
      pack_left(p, top, bottom - top, k0, depth, left);
      for (Index col = first_col; col < last_col; col += panel_cols) {
        const Index cols = std::min(panel_cols, last_col - col);
        const Index row = p.symmetric ? std::max(top, col) : top;
        if (row >= bottom) break;
        (p.right_transposed ? pack_right_transposed : pack_right)(p, col, cols, k0, depth, right);
        compute_panel(p, row, bottom, col, cols, left + (row - top) * block_depth, right, depth, block == 0);
      }
    }
  }
}

// Copies what lies left of and below the diagonal, in rows top … top + lanes − 1, to the other side of it.
void mirror_rows(float* square, Index size, Index top) {
  const Index bottom = std::min<Index>(top + lanes, size);
  Index col = 0;
  if (bottom - top == lanes) {
    for (; col < top; col += lanes) transpose_block(square + top * size + col, size, square + col * size + top, size);
  }
  for (Index i = top; i < bottom; ++i) {
    for (Index j = col; j < i; ++j) square[j * size + i] = square[i * size + j];
  }
}

// Where part number `part` of `parts` equal shares of the work begins: a column at the start of a panel. A symmetric
// product does size − j rows of column j, so that its shares of the columns grow to the right.
Index first_column_of(const PackedProduct& p, int part, int parts) {
  if (part == parts) return p.cols;
  const double share = static_cast<double>(part) / parts;
  const double position = p.symmetric ? 1 - std::sqrt(1 - share) : share;
  const auto panel = static_cast<Index>(std::llround(position * static_cast<double>(p.cols) / panel_cols));
  return std::min(panel * panel_cols, p.cols);
}

}  // namespace

void compute(const PackedProduct& product, int threads) {
  if (product.rows == 0 || product.cols == 0) return;
  const Index mirrored_rows = product.symmetric ? product.rows : 0;
  if (threads <= 1) {
    // No parallel region at all: its pool of threads would not survive a fork of this process.
    compute_columns(product, 0, product.cols);
    for (Index top = 0; top < mirrored_rows; top += lanes) mirror_rows(product.out, product.rows, top);
    return;
  }
#pragma omp parallel num_threads(threads)
  {
#pragma omp for schedule(static, 1)
    for (int part = 0; part < threads; ++part) {
      const Index first = first_column_of(product, part, threads);
      const Index last = first_column_of(product, part + 1, threads);
      if (first < last) compute_columns(product, first, last);
    }
#pragma omp for schedule(dynamic, 1) nowait
    for (Index top = 0; top < mirrored_rows; top += lanes) mirror_rows(product.out, product.rows, top);
  }
}

}  // namespace muonwalk
