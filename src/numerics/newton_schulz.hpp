#pragma once

#include <functional>
#include <string>
#include <vector>

#include "src/numerics/newton_schulz_settings.hpp"

namespace muonwalk {

/// Replaces the singular values of x by values near 1 and keeps its singular vectors: transpose if rows > cols,
/// X ← X / (‖X‖_F + 1e-7), then `steps` times A = X Xᵀ, B = b A + (c A) A, X ← a X + B X, and transpose back. The
/// settings have variants of each of these.
/// x rows × cols; the result has the same shape. In bf16 every input and result of a product and of an elementwise step
/// is rounded to bfloat16. A zero matrix stays zero. `after_step(k, X)`, where given, sees X (wide, so min × max)
/// before the first step (k = 0) and after each. Throws UsageError, naming `parameter`, when x holds a NaN or an
/// infinity.
Matrix newton_schulz(const Matrix& x, const NewtonSchulzSettings& settings = {}, const std::string& parameter = "x",
                     const std::function<void(int step, const Matrix& x)>& after_step = nullptr);

/// What computes newton_schulz with chains in another place, a GPU for example, with the same bits.
using ChainEngine =
    std::function<Matrix(const Matrix& x, const NewtonSchulzSettings& settings, const std::string& parameter)>;

/// While it lives, newton_schulz with Products::chain on the calling thread is left to `engine`, unless it is to show
/// its steps, or the settings have a variant of the plain formula that engines need not know (a schedule, another
/// normalization, other lines, from_the_right). Scopes nest.
class ChainEngineScope {
 public:
  /// `engine` must outlive the scope.
  explicit ChainEngineScope(const ChainEngine& engine);
  ~ChainEngineScope();
  ChainEngineScope(const ChainEngineScope&) = delete;
  ChainEngineScope& operator=(const ChainEngineScope&) = delete;

 private:
  const ChainEngine* previous_;
};

/// The floating point operations of newton_schulz, counted as the plain formula does (a multiply-add is two):
/// steps · (4 m²n + 2 m³) with m = min(rows, cols), n = max(rows, cols); 20 m²n + 10 m³ for five steps.
double newton_schulz_flops(Index rows, Index cols, int steps = 5);
/// The same for the settings' steps, with `gram` begins · 4 m²n + (4 steps − 3 begins) · 2 m³, where it begins once or
/// twice: 8 m²n + 28 m³ for five steps.
double newton_schulz_flops(Index rows, Index cols, const NewtonSchulzSettings& settings);

/// The floating point operations on a piece of a matrix, rows × cols, if A is the sum of X Xᵀ over the pieces: A is
/// rows × rows, whichever side is the longer one.
double newton_schulz_flops_of_piece(Index rows, Index cols, int steps = 5);

/// The singular values of x in double precision, largest first: min(rows, cols) of them.
std::vector<double> singular_values(const Matrix& x);

}  // namespace muonwalk
