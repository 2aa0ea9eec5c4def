// What runs on the GPU. Every result has the bits of its counterpart in src/numerics and src/optim, which CPUs compute.
//
// That holds by what is written here and not by a device's good will: every operation that rounds is one of the
// intrinsics that round to nearest, keep subnormal numbers and are never fused with another (__fmaf_rn, __fmul_rn, …).
// What is not the same are NaNs: where a CPU's result is a NaN this one is too, but its bits are those of the device.
//
// The stand-in for CUDA compiles this file for the processor (tests/cuda/kernels_on_cpu.cpp), which is how the indices
// and the order of operations are tested where there is no GPU.

#include "src/cuda/kernel_arguments.inc"

using namespace muonwalk::cuda;

#ifdef __CUDACC__
#define UNROLLED _Pragma("unroll")
#define NOT_UNROLLED _Pragma("unroll 1")
#define NOT_INLINED __noinline__
#else
#define UNROLLED _Pragma("GCC unroll 16")
#define NOT_UNROLLED
#define NOT_INLINED inline
#endif

namespace {

// --- numbers
// ----------------------------------------------------------------------------------------------------------

// nearest_bf16 of src/numerics/bfloat16.hpp.
__device__ inline unsigned nearest_bf16_bits(unsigned bits) {
  const unsigned rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u;
  const unsigned quiet = (bits | 0x00400000u) & 0xffff0000u;
  return (bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded;
}
__device__ inline float nearest_bf16(float value) { return __uint_as_float(nearest_bf16_bits(__float_as_uint(value))); }

// A bfloat16 chain takes a subnormal number for a zero of its sign, as a factor and as what comes out of a step. A
// result is subnormal when it is below 2⁻¹²⁶, rounded to 24 bits as if exponents had no end: see ChainProduct. `exact`
// has far more digits than a float where it is near 2⁻¹²⁶.
constexpr float smallest_normal = 1.17549435082228750797e-38f;  // 2⁻¹²⁶

__device__ inline float flushed(float value) { return fabsf(value) < smallest_normal ? copysignf(0.0f, value) : value; }

__device__ inline float flushed(double exact, float rounded) {
  constexpr double half_a_step_below = 1.17549435082228750797e-38 - 3.50324616081204267e-46;  // 2⁻¹²⁶ − 2⁻¹⁵¹
  const bool tiny = fabs(exact) < half_a_step_below || fabsf(rounded) < smallest_normal;
  return tiny ? copysignf(0.0f, rounded) : rounded;
}

__device__ inline float multiply_flushed(float x, float y) {
  x = flushed(x), y = flushed(y);
  return flushed(__dmul_rn(x, y), __fmul_rn(x, y));
}

// x and y must not be subnormal, and sum is not because it is what this gave before.
__device__ inline float multiply_add_flushed(float x, float y, float sum) {
  const float rounded = __fmaf_rn(x, y, sum);
  if (fabsf(rounded) > smallest_normal || rounded != rounded) return rounded;
  return flushed(__dadd_rn(__dmul_rn(x, y), sum), rounded);
}

// --- products
// ---------------------------------------------------------------------------------------------------------

// A block of 256 threads computes a tile of 128 × 128 elements, and a thread 8 × 8 of them: four rows from the tile's
// upper half, four from the lower, and columns likewise, so that neighbouring threads read neighbouring words. The
// factors come through shared memory in slabs of 16 k. While one slab is multiplied, the next is on its way into
// registers, and then into the other of two places.
//
// Whatever the tile, an element is one chain of fused multiply-adds in the order of k. A slab that k does not fill is
// filled up with −0 · 0, which changes no sum: not even one that is −0.
constexpr int tile = product_tile;
constexpr int slab = 16;
constexpr int row_words = tile + 4;  // of a row of k in shared memory; the four spread it over the banks

using Slab = float[slab][row_words];

struct Thread {
  int index, row, col;  // row and col: of the first of its elements in the tile
};

// Which word of the tile is a thread's i-th, counted from its first: 0, 1, 2, 3, 64, 65, 66, 67.
__device__ inline int offset(int i) { return i % 4 + i / 4 * (tile / 2); }

__device__ inline bool is_aligned(const void* address) {
  return reinterpret_cast<unsigned long long>(address) % 16 == 0;
}

// A factor whose rows go along k, or, if it is not `along_k`, whose rows are k.
struct Factor {
  const float* values;
  Count rows, depth;  // rows: of the left factor, or columns of the right one
  Count first_row;    // of the tile
  float scale;
  float padding;  // beyond the depth
  bool along_k, in_fours;
};

// What a thread has fetched of a slab: two times four neighbours.
struct Fetched {
  float words[2][4];
};

// bf16: is a number so small that a sum could become subnormal? Products of larger ones are multiples of 2⁻¹²⁴, because
// a bfloat16 has eight bits, and so are their sums, however they are rounded. Then no step has anything to flush.
__device__ inline bool may_be_flushed(float value) {
  return value != 0.0f && fabsf(value) < 2.77555756156289135106e-17f;  // 2⁻⁵⁵
}

template <bool bf16>
__device__ inline Fetched fetch(const Factor& factor, const Thread& thread, Count k0, bool& careful) {
  Fetched fetched;
  UNROLLED for (int half = 0; half < 2; ++half) {
    // Along k: 64 rows of four times four k each; else eight rows of k of 32 times four columns.
    const Count row = factor.first_row + (factor.along_k ? thread.index / 4 + half * 64 : thread.index % 32 * 4);
    const Count k = k0 + (factor.along_k ? thread.index % 4 * 4 : thread.index / 32 + half * 8);
    const Count row_step = factor.along_k ? 0 : 1, k_step = 1 - row_step;
    const float* const from = factor.values + (factor.along_k ? row * factor.depth + k : k * factor.rows + row);
    float* const words = fetched.words[half];
    if (factor.in_fours && row + 3 * row_step < factor.rows && k + 3 * k_step < factor.depth) {
      const float4 four = *reinterpret_cast<const float4*>(from);
      words[0] = four.x, words[1] = four.y, words[2] = four.z, words[3] = four.w;
    } else {
      UNROLLED for (int i = 0; i < 4; ++i) {
        const bool inside = row + i * row_step < factor.rows && k + i * k_step < factor.depth;
        words[i] = inside ? from[i] : 0.0f;
      }
    }
    UNROLLED for (int i = 0; i < 4; ++i) {
      if (bf16) {
        words[i] = flushed(words[i]);
        careful = careful || may_be_flushed(words[i]);
      } else {
        words[i] = __fmul_rn(factor.scale, words[i]);
      }
      // An odd depth of bf16 is filled up to a pair by a step of 0 · 0.
      const Count used = bf16 ? factor.depth + factor.depth % 2 : factor.depth;
      if (k + i * k_step >= used) words[i] = factor.padding;
    }
  }
  return fetched;
}

// In bf16 the second of a pair comes first.
template <bool bf16>
__device__ inline void put(const Fetched& fetched, const Factor& factor, const Thread& thread, Slab& to) {
  UNROLLED for (int half = 0; half < 2; ++half) {
    UNROLLED for (int i = 0; i < 4; ++i) {
      const int row = factor.along_k ? thread.index / 4 + half * 64 : thread.index % 32 * 4 + i;
      const int k = factor.along_k ? thread.index % 4 * 4 + i : thread.index / 32 + half * 8;
      to[bf16 ? k ^ 1 : k][row] = fetched.words[half][i];
    }
  }
}

__device__ inline void read_eight(const float* row, int first, float (&words)[8]) {
  UNROLLED for (int half = 0; half < 2; ++half) {
    const float4 four = *reinterpret_cast<const float4*>(row + first + half * (tile / 2));
    words[4 * half] = four.x, words[4 * half + 1] = four.y, words[4 * half + 2] = four.z, words[4 * half + 3] = four.w;
  }
}

__device__ inline void multiply_slab(const Slab& left, const Slab& right, const Thread& thread, float (&sums)[8][8]) {
  UNROLLED for (int k = 0; k < slab; ++k) {
    float x[8], y[8];
    read_eight(left[k], thread.row, x);
    read_eight(right[k], thread.col, y);
    UNROLLED for (int i = 0; i < 8; ++i) {
      UNROLLED for (int j = 0; j < 8; ++j) sums[i][j] = __fmaf_rn(x[i], y[j], sums[i][j]);
    }
  }
}

// The same where subnormal numbers may come up. It is rarely needed and need not be fast, but it must not take
// registers from what is: so it is a call, and works on a copy of the sums in memory.
__device__ NOT_INLINED void multiply_carefully(const Slab& left, const Slab& right, const Thread& thread, float* sums) {
  NOT_UNROLLED for (int k = 0; k < slab; ++k) {
    NOT_UNROLLED for (int at = 0; at < 64; ++at) {
      const float x = left[k][thread.row + offset(at / 8)], y = right[k][thread.col + offset(at % 8)];
      sums[at] = multiply_add_flushed(x, y, sums[at]);
    }
  }
}

__device__ inline void multiply_slab_carefully(const Slab& left, const Slab& right, const Thread& thread,
                                               float (&sums)[8][8]) {
  float copy[64];
  UNROLLED for (int i = 0; i < 8; ++i) { UNROLLED for (int j = 0; j < 8; ++j) copy[8 * i + j] = sums[i][j]; }
  multiply_carefully(left, right, thread, copy);
  UNROLLED for (int i = 0; i < 8; ++i) { UNROLLED for (int j = 0; j < 8; ++j) sums[i][j] = copy[8 * i + j]; }
}

// The tile of block number `block`. Of a symmetric product only those on and below the diagonal have a block, row by
// row of tiles: 0, then 1 and 2, then 3, 4 and 5.
__device__ inline void find_tile(const ProductArguments& p, Count block, Count& row, Count& col) {
  if (p.symmetric) {
    row = static_cast<Count>(sqrt(__dmul_rn(2.0, static_cast<double>(block))));  // or a neighbour of it
    while (row * (row + 1) / 2 > block) --row;
    while ((row + 1) * (row + 2) / 2 <= block) ++row;
    col = block - row * (row + 1) / 2;
  } else {
    const Count across = (p.cols + tile - 1) / tile;
    row = block / across;
    col = block % across;
  }
  row *= tile;
  col *= tile;
}

// What a sum of bf16 becomes in the end.
__device__ NOT_INLINED float last_words(const ProductArguments& p, Count at, float sum) {
  const float result = nearest_bf16(sum);
  if (p.addend == nullptr) return result;
  const float addend = nearest_bf16(multiply_flushed(p.addend_scale, p.addend[at]));
  return nearest_bf16(flushed(__fadd_rn(flushed(addend), flushed(result))));
}

template <bool bf16>
__device__ inline void multiply_tile(const ProductArguments& p, Slab (&left)[2], Slab (&right)[2]) {
  const int index = static_cast<int>(threadIdx.x);
  const Thread thread = {index, index / 16 * 4, index % 16 * 4};
  Count top, first_col;
  find_tile(p, static_cast<Count>(blockIdx.x), top, first_col);

  const Factor of_left = {p.left,       p.rows, p.depth, top,
                          p.left_scale, -0.0f,  true,    p.depth % 4 == 0 && is_aligned(p.left)};
  const Factor of_right = {p.right,
                           p.cols,
                           p.depth,
                           first_col,
                           1.0f,
                           0.0f,
                           p.right_transposed != 0,
                           (p.right_transposed ? p.depth : p.cols) % 4 == 0 && is_aligned(p.right)};

  // In fp32 a sum starts from the addend; in bf16 from zero.
  float sums[8][8];
  UNROLLED for (int i = 0; i < 8; ++i) {
    UNROLLED for (int j = 0; j < 8; ++j) {
      const Count row = top + thread.row + offset(i), col = first_col + thread.col + offset(j);
      const bool starts = !bf16 && p.addend != nullptr && row < p.rows && col < p.cols;
      sums[i][j] = starts ? __fmul_rn(p.addend_scale, p.addend[row * p.cols + col]) : 0.0f;
    }
  }

  // From the first small number on, the whole block is careful.
  bool careful = false;
  const auto everybody_waits = [&] {
    if (bf16)
      careful = __syncthreads_or(careful) != 0;
    else
      __syncthreads();
  };
  const Count slabs = (p.depth + slab - 1) / slab;
  if (slabs > 0) {
    put<bf16>(fetch<bf16>(of_left, thread, 0, careful), of_left, thread, left[0]);
    put<bf16>(fetch<bf16>(of_right, thread, 0, careful), of_right, thread, right[0]);
    everybody_waits();
  }
  for (Count s = 0; s < slabs; ++s) {
    const int here = static_cast<int>(s % 2), there = 1 - here;
    const bool more = s + 1 < slabs;
    bool next_careful = careful;
    Fetched next_left, next_right;
    if (more) {
      next_left = fetch<bf16>(of_left, thread, (s + 1) * slab, next_careful);
      next_right = fetch<bf16>(of_right, thread, (s + 1) * slab, next_careful);
    }
    if (bf16 && careful)
      multiply_slab_carefully(left[here], right[here], thread, sums);
    else
      multiply_slab(left[here], right[here], thread, sums);
    if (more) {
      // All have gone past the last wait, so nobody reads these places any more.
      put<bf16>(next_left, of_left, thread, left[there]);
      put<bf16>(next_right, of_right, thread, right[there]);
      careful = next_careful;
      everybody_waits();
    }
  }

  const bool fours = p.cols % 4 == 0 && is_aligned(p.out);
  UNROLLED for (int i = 0; i < 8; ++i) {
    const Count row = top + thread.row + offset(i);
    if (row >= p.rows) continue;
    UNROLLED for (int half = 0; half < 2; ++half) {
      const Count col = first_col + thread.col + half * (tile / 2), at = row * p.cols + col;
      float* const sum = sums[i] + 4 * half;
      if (bf16) {
        UNROLLED for (int j = 0; j < 4; ++j) {
          if (col + j < p.cols) sum[j] = last_words(p, at + j, sum[j]);
        }
      }
      if (fours && col < p.cols && (!p.symmetric || row >= col + 3)) {
        *reinterpret_cast<float4*>(p.out + at) = make_float4(sum[0], sum[1], sum[2], sum[3]);
      } else {
        UNROLLED for (int j = 0; j < 4; ++j) {
          if (col + j < p.cols && (!p.symmetric || row >= col + j)) p.out[at + j] = sum[j];
        }
      }
      if (!p.symmetric) continue;
      UNROLLED for (int j = 0; j < 4; ++j) {
        if (col + j < p.cols && row > col + j) p.out[(col + j) * p.cols + row] = sum[j];
      }
    }
  }
}

// Where this thread's share begins, and how far it is from one of its elements to the next.
__device__ inline Count first_element() { return static_cast<Count>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline Count element_step() { return static_cast<Count>(gridDim.x) * blockDim.x; }

// --- sums as trees
// ------------------------------------------------------------------------------------------------------

__device__ inline float as_float(float value) { return value; }
__device__ inline float as_float(unsigned short bf16) { return __uint_as_float(static_cast<unsigned>(bf16) << 16); }
__device__ inline void set(float* out, float value) { *out = value; }
__device__ inline void set(unsigned short* out, float value) {
  *out = static_cast<unsigned short>(nearest_bf16_bits(__float_as_uint(value)) >> 16);
}

// As tree_sum in src/numerics/tree_sum.cpp: a stack of finished subtrees, which a new leaf joins as counting carries.
template <class T>
__device__ inline void tree_sum(Count count, T* out, const TreeSumParts& a) {
  for (Count i = first_element(); i < count; i += element_step()) {
    float stack[10];  // one for each bit of most_parts
    int depth = 0;
    for (int leaf = 0; leaf < a.parts; ++leaf) {
      stack[depth++] = as_float(static_cast<const T*>(a.part[leaf])[i]);
      for (int carries = leaf; carries % 2 == 1; carries /= 2, --depth)
        stack[depth - 2] = __fadd_rn(stack[depth - 2], stack[depth - 1]);
    }
    for (; depth > 1; --depth) stack[depth - 2] = __fadd_rn(stack[depth - 2], stack[depth - 1]);
    set(out + i, depth == 0 ? 0.0f : stack[0]);
  }
}

}  // namespace

namespace muonwalk::cuda {
extern "C" {

__global__ void __launch_bounds__(product_threads, 2) chain_fp32(const ProductArguments p) {
  __shared__ __align__(16) float left[2][slab][row_words];
  __shared__ __align__(16) float right[2][slab][row_words];
  multiply_tile<false>(p, left, right);
}

__global__ void __launch_bounds__(product_threads, 2) chain_bf16(const ProductArguments p) {
  __shared__ __align__(16) float left[2][slab][row_words];
  __shared__ __align__(16) float right[2][slab][row_words];
  multiply_tile<true>(p, left, right);
}

// A square goes through shared memory, so that both its rows and its columns are neighbours in memory when they are
// moved. The extra word in a row spreads a column over the banks.
__global__ void transpose(Count rows, Count cols, const float* from, float* to) {
  __shared__ float square[transpose_tile][transpose_tile + 1];
  const Count across = (cols + transpose_tile - 1) / transpose_tile;
  const Count top = static_cast<Count>(blockIdx.x) / across * transpose_tile;
  const Count left = static_cast<Count>(blockIdx.x) % across * transpose_tile;
  const int x = static_cast<int>(threadIdx.x) % transpose_tile, y = static_cast<int>(threadIdx.x) / transpose_tile;
  for (int i = y; i < transpose_tile; i += transpose_rows)
    if (top + i < rows && left + x < cols) square[i][x] = from[(top + i) * cols + left + x];
  __syncthreads();
  for (int i = y; i < transpose_tile; i += transpose_rows)
    if (left + i < cols && top + x < rows) to[(left + i) * rows + top + x] = square[x][i];
}

// As pairwise_sum_of_squares in src/numerics/tree_sum.cpp: sixteen running sums per leaf, which are then halved.
__global__ void leaf_sums(Count count, const float* values, double* sums) {
  __shared__ double lanes[leaf_threads];
  const int index = static_cast<int>(threadIdx.x), lane = index % leaf_lanes;
  const Count leaf = static_cast<Count>(blockIdx.x) * (leaf_threads / leaf_lanes) + index / leaf_lanes;
  const Count stop = leaf * leaf_values + leaf_values < count ? leaf * leaf_values + leaf_values : count;
  double sum = 0;
  for (Count i = leaf * leaf_values + lane; i < stop; i += leaf_lanes) {
    const double value = values[i];
    sum = __dadd_rn(sum, __dmul_rn(value, value));
  }
  lanes[index] = sum;
  for (int half = leaf_lanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (lane < half) lanes[index] = __dadd_rn(lanes[index], lanes[index + half]);
  }
  if (lane == 0 && leaf * leaf_values < count) sums[leaf] = lanes[index];
}

// Level by level: neighbours join, an odd one waits. That is the tree of tree_sum.hpp.
__global__ void tree_of_doubles(Count count, double* sums) {
  for (Count step = 1; step < count; step *= 2) {
    for (Count i = static_cast<Count>(threadIdx.x) * 2 * step; i + step < count; i += blockDim.x * 2 * step)
      sums[i] = __dadd_rn(sums[i], sums[i + step]);
    __syncthreads();
  }
}

__global__ void divide(Count count, float* values, double denominator, bool round) {
  for (Count i = first_element(); i < count; i += element_step()) {
    const float quotient = __double2float_rn(__ddiv_rn(values[i], denominator));
    values[i] = round ? nearest_bf16(quotient) : quotient;
  }
}

__global__ void scale_to_bf16(Count count, float scale, const float* values, float* out) {
  for (Count i = first_element(); i < count; i += element_step()) out[i] = nearest_bf16(__fmul_rn(scale, values[i]));
}

__global__ void to_bf16(Count count, const float* floats, unsigned short* bf16) {
  for (Count i = first_element(); i < count; i += element_step()) set(bf16 + i, floats[i]);
}

__global__ void from_bf16(Count count, const unsigned short* bf16, float* floats) {
  for (Count i = first_element(); i < count; i += element_step()) floats[i] = as_float(bf16[i]);
}

__global__ void momentum_step(Count count, const float* gradient, float* momentum, float* update, float mu,
                              bool nesterov) {
  for (Count i = first_element(); i < count; i += element_step()) {
    const float g = gradient[i];
    const float m = __fadd_rn(__fmul_rn(mu, momentum[i]), g);
    momentum[i] = m;
    update[i] = nesterov ? __fadd_rn(g, __fmul_rn(mu, m)) : m;
  }
}

__global__ void apply_update(Count count, float* weights, const float* orthogonal, float keep, float scale) {
  for (Count i = first_element(); i < count; i += element_step()) {
    const float decayed = __fmul_rn(weights[i], keep);
    weights[i] = __fsub_rn(decayed, __fmul_rn(scale, orthogonal[i]));
  }
}

__global__ void tree_sum_fp32(Count count, float* out, const TreeSumParts a) { tree_sum(count, out, a); }

__global__ void tree_sum_bf16(Count count, unsigned short* out, const TreeSumParts a) { tree_sum(count, out, a); }
}
}  // namespace muonwalk::cuda
