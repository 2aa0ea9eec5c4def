#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "src/layout/parameter.hpp"
#include "src/numerics/newton_schulz.hpp"
#include "src/optim/fused_matrix.hpp"

namespace muonwalk {

/// What a DP gather brings together before Newton–Schulz. Ranks that own whole matrices need none.
enum class Gather {
  buckets,      ///< all of a bucket, on every rank: as the proof of concept does
  cut_matrices  ///< a matrix with several owners, on its owners alone
};

/// What the orthogonal matrix is multiplied by, besides the learning rate, by the shape of the whole matrix.
enum class Scale {
  matched_rms,  ///< rms · √max(rows, cols): updates of AdamW's size (Liu et al., 2025)
  largest,      ///< √max(rows, cols): a root mean square of 1
  tall,         ///< √max(1, rows / cols) (Keller Jordan)
  ratio,        ///< √(rows / cols) (Bernstein, "Deriving Muon", 2025)
  none          ///< 1
};
/// "matched", "largest", "tall", "ratio", "none"; the opposite throws UsageError for any other word.
/// @{
const char* scale_name(Scale scale);
Scale parse_scale(const std::string& word);
/// @}

/// In how many multiplications, each of which rounds.
enum class Scaling {
  once,   ///< w − (lr · scale) · O
  twice,  ///< w − lr · (scale · O)
  thrice  ///< w − lr · (rms · (root · O)), where rms is 1 unless the scale is matched_rms
};

/// How weights decay, by c = lr · weight_decay.
enum class Decay {
  scales,     ///< w · (1 − c)
  subtracts,  ///< w − c · w
  cautious    ///< w − c · w where the update has the sign of w, or one of both is 0 (arXiv:2510.12402); else w
};

/// The elementwise arithmetic of a step: where implementations order and round the same formula differently.
/// recipes.hpp has the choices of each.
struct ElementArithmetic {
  bool lerp = false;                 ///< A mean of gradients in place of a sum: m ← m + (1 − μ)(g − m).
  bool float_momentum = false;       ///< The mean takes 1 − μ in float32, and not in double precision.
  bool fused = false;                ///< x + a · y, where torch.add does both, rounds once.
  Decay decay = Decay::scales;       ///< How weights decay.
  bool decay_scaled = false;         ///< The scale of the update is in the decay as well.
  Scale scale = Scale::matched_rms;  ///< What the update is multiplied by.
  Scaling scaling = Scaling::once;   ///< How it is multiplied.
  bool round_scaled = false;         ///< In bf16, the first product of O with a factor is rounded again.
};

/// A running mean of squares of the orthogonal matrix, which NorMuon (arXiv:2510.05491) and nanochat divide it by, row
/// by row, before they bring it back to the norm that it had: O ← O / √v, with
/// v ← lerp(v, mean of O² over a row, 1 − β₂). All of it in float32.
struct SecondMoment {
  bool used = false;
  float beta2 = 0.95f;
  float epsilon = 1e-8f;     ///< Added to √v; or the least v, with `floor`.
  bool floor = false;        ///< Divide by √max(v, ε), and not by √v + ε.
  bool longer_side = false;  ///< The means are those of columns where there are more columns than rows.
  bool unit_norm = false;    ///< The matrix is brought to the Frobenius norm √min(rows, cols) before.

  /// How many means a matrix of this shape has.
  Index count(Shape full) const { return !used ? 0 : longer_side ? std::max(full.rows, full.cols) : full.rows; }
};

/// The knobs of Muon, grouped by the part of the step that reads them. The defaults are the proof of concept's.
struct MuonSettings {
  float lr = 0.1f;            ///< The learning rate.
  double momentum = 0.9;      ///< μ: m ← μ m + g. A double, because 1 − μ rounds differently of a float.
  float weight_decay = 0.1f;  ///< Decoupled: weights are multiplied by 1 − lr · weight_decay.
  float rms = 0.2f;           ///< The update's root mean square, here that of AdamW: see update_scale.
  bool nesterov = true;       ///< Orthogonalize g + μ m, else m.

  ElementArithmetic arithmetic = {};        ///< What momentum and apply read, besides the numbers above.
  NewtonSchulzSettings newton_schulz = {};  ///< Its precision is also that in which updates are gathered.
  FusedMatrices fused = {};                 ///< Matrices that are orthogonalized in pieces.
  SecondMoment second_moment = {};          ///< What the orthogonal matrix is divided by. No piece has one.

  Gather gather = Gather::buckets;  ///< What the DP gather brings together.
  bool gather_unrounded = false;    ///< Gathers in float32 even where bf16 would do.
  /// What a step is handed: false, this rank's own gradients, whole buckets, which it sums over DP ranks; true, its DP
  /// shards of the sum, so that it reduces nothing. What clips gradients by their global norm has to sum them before
  /// any step begins.
  bool summed_gradients = false;

  /// The type in which updates are gathered: bf16 where Newton–Schulz rounds its input anyway, before its norm.
  Precision gathered() const {
    const bool rounds = newton_schulz.normalization.round_first && !gather_unrounded;
    return rounds ? newton_schulz.precision : Precision::fp32;
  }
};

/// The defaults in a precision, with this many threads and these products.
inline MuonSettings muon_settings(Precision precision, int threads, Products products) {
  MuonSettings settings;
  settings.newton_schulz.products = products;
  settings.newton_schulz.precision = precision;
  settings.newton_schulz.threads = threads;
  return settings;
}

/// Refuses settings that no step makes sense with. Throws UsageError, one sentence that names the knob as the option of
/// lesson 09 does, its value and what works: a negative or infinite learning rate, decay or rms, a momentum outside of
/// [0, 1), a β₂ outside of it, or Newton–Schulz steps outside of 0 to 100.
void require_sensible(const MuonSettings& settings);

/// The part of the scale that is of the shape alone: a root, or 1.
inline float shape_scale(Shape full, Scale scale) {
  const float rows = static_cast<float>(full.rows), cols = static_cast<float>(full.cols);
  if (scale == Scale::none) return 1;
  if (scale == Scale::tall) return std::sqrt(std::max(1.0f, rows / cols));
  if (scale == Scale::ratio) return std::sqrt(rows / cols);
  return std::sqrt(std::max(rows, cols));
}

/// What the orthogonal matrix is multiplied by before it is taken from the weights: lr · rms · √max(rows, cols), for
/// the matrix's `full` shape, before TP, or another Scale. A matrix with orthonormal rows or columns has a root mean
/// square of 1 / √max(rows, cols), so the update's becomes lr · rms ("Muon is Scalable for LLM Training", Liu et al.
/// 2025, section 2.2). The distributed step and the serial reference share this line and the next and no other, so that
/// both round them alike.
inline float update_scale(Shape full, const MuonSettings& settings) {
  const float rms = settings.arithmetic.scale == Scale::matched_rms ? settings.rms : 1.0f;
  return settings.lr * rms * shape_scale(full, settings.arithmetic.scale);
}

/// The same as the factors by which each element of O is multiplied, one after the other; a 1 at the end changes
/// nothing.
inline std::array<float, 3> update_factors(Shape full, const MuonSettings& settings) {
  const float rms = settings.arithmetic.scale == Scale::matched_rms ? settings.rms : 1.0f;
  const float root = shape_scale(full, settings.arithmetic.scale);
  if (settings.arithmetic.scaling == Scaling::twice) return {rms * root, settings.lr, 1};
  if (settings.arithmetic.scaling == Scaling::thrice) return {root, rms, settings.lr};
  return {update_scale(full, settings), 1, 1};
}

}  // namespace muonwalk
