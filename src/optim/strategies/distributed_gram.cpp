// (g) As in (f), matrices are dealt out over dp by work, and all ranks of the owner's TP group work on each. But they
// gather no slice: A = X Xᵀ is the sum of what each slice has to say of it, so that sum travels instead, once per step
// of Newton–Schulz. That is less to send only where A is small beside the matrix. Megatron-LM can do so (tp_mode
// "distributed", which is newton_schulz_tp of Emerging-Optimizers). As there, the rows of X are the side that TP does
// not cut. Where that is the longer one, A is larger than the matrix, and every rank computes A A by itself.
//
// X = (X₁ … X_T) lies on T ranks, and A is the sum of all X_t X_tᵀ: s × s elements where s is the side that is not cut.
// Before the first step the sum of squares travels, for the norm. B = b A + (c A) A is computed by every rank, and
// a X_t + B X_t is its own. Matrices that TP does not cut are orthogonalized by every rank of the TP group, as Muon
// does it; so with one TP rank its bits are Muon's. Both sums are balanced trees over TP ranks, that of squares in
// double precision, that of A in float32. In bf16 each rank's part is rounded and travels as a bfloat16, and the sum is
// rounded once. So the bits depend on T: the reference adds the same pieces in the same trees.
#include <cstddef>
#include <utility>

#include "src/errors.hpp"
#include "src/numerics/newton_schulz_steps.hpp"
#include "src/numerics/tree_sum.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/serial_muon.hpp"
#include "src/optim/strategies/strategy.hpp"
#include "src/optim/strategies/tp_cuts.hpp"

namespace muonwalk {
namespace {

// Settings for an X whose rows are the side that TP does not cut: a transpose, where TP cuts rows.
NewtonSchulzSettings settings_for_pieces(NewtonSchulzSettings settings, bool turned) {
  settings.from_the_right = settings.from_the_right && turned;
  return settings;
}

// The sum of one number over the ranks: all of them get all, and add them in the same tree.
double sum_over_ranks(Communicator& tp, double mine) {
  std::vector<double> all(static_cast<std::size_t>(tp.size()));
  tp.all_gather(reinterpret_cast<const std::byte*>(&mine), Index{sizeof(mine)},
                reinterpret_cast<std::byte*>(all.data()));
  return tree_sum(all.data(), tp.size());
}

// The sum of everybody's A.
void sum_over_ranks(Communicator& tp, Matrix& a, Precision precision) {
  if (precision == Precision::fp32) return tp.all_reduce(a.data(), a.size());
  FlatOf<bfloat16> travelling(static_cast<std::size_t>(a.size()));
  to_bf16(a.data(), a.size(), travelling.data());
  tp.all_reduce(travelling.data(), a.size());
  from_bf16(travelling.data(), a.size(), a.data());
}

// The steps of Newton–Schulz on my piece.
void iterate_on_piece(Communicator& tp, Matrix& x, const NewtonSchulzSettings& settings) {
  NewtonSchulzBuffers buffers(x.rows(), x.cols(), settings.precision);
  for (int step = 1; step <= settings.steps; ++step) {
    newton_schulz_gram(x, settings, buffers);           // X_t X_tᵀ
    sum_over_ranks(tp, buffers.a, settings.precision);  // X Xᵀ
    newton_schulz_update(x, step, settings, buffers);   // a X_t + B X_t
  }
}

// Newton–Schulz of a whole matrix in as many pieces as ranks would have, in one process.
Matrix newton_schulz_in_pieces(const Matrix& whole, int pieces, bool by_rows, const NewtonSchulzSettings& settings,
                               const std::string& name) {
  const NewtonSchulzSettings chosen = settings_for_pieces(settings, by_rows);
  const Index m = by_rows ? whole.cols() : whole.rows();             // the side that is not cut
  const Index n = (by_rows ? whole.rows() : whole.cols()) / pieces;  // a piece of the other one

  std::vector<Matrix> x;
  for (int t = 0; t < pieces; ++t) {
    x.emplace_back(m, n);
    for (Index i = 0; i < m; ++i)
      for (Index j = 0; j < n; ++j) x[t](i, j) = by_rows ? whole(t * n + j, i) : whole(i, t * n + j);
  }

  // X ← X / ‖X‖
  std::vector<double> squares;
  for (Matrix& piece : x) squares.push_back(squares_of_norm(piece, by_rows, chosen, name));
  const double all_squares = tree_sum(squares.data(), pieces);
  for (Matrix& piece : x) divide_by_norm(piece, all_squares, chosen);

  std::vector<NewtonSchulzBuffers> buffers(x.size(), NewtonSchulzBuffers(m, n, chosen.precision));
  std::vector<float> leaves(x.size());
  for (int step = 1; step <= chosen.steps; ++step) {
    // A: what the pieces have to say of each element, added as a tree. The pieces' own A are rounded to bf16 already.
    for (int t = 0; t < pieces; ++t) newton_schulz_gram(x[t], chosen, buffers[t]);
    for (Index i = 0; i < m * m; ++i) {
      for (int t = 0; t < pieces; ++t) leaves[t] = buffers[t].a.data()[i];
      float sum = tree_sum(leaves.data(), pieces);
      if (chosen.precision == Precision::bf16) round_to_bf16(&sum, 1);
      for (NewtonSchulzBuffers& of_piece : buffers) of_piece.a.data()[i] = sum;
    }
    // X ← a X + B X
    for (int t = 0; t < pieces; ++t) newton_schulz_update(x[t], step, chosen, buffers[t]);
  }

  Matrix result(whole.rows(), whole.cols());
  for (int t = 0; t < pieces; ++t)
    for (Index i = 0; i < m; ++i)
      for (Index j = 0; j < n; ++j) (by_rows ? result(t * n + j, i) : result(i, t * n + j)) = x[t](i, j);
  return result;
}

class SerialDistributedGram : public SerialMuon {
 public:
  SerialDistributedGram(std::vector<NamedMatrix> parameters, MuonSettings settings, TpCuts cuts)
      : SerialMuon(std::move(parameters), std::move(settings)), cuts_(std::move(cuts)) {}

 protected:
  void matrix_step(Matrix& w, Matrix& m, const Matrix& g, const std::string& name, Flat* v) override {
    if (cuts_.pieces(name) == 1) return SerialMuon::matrix_step(w, m, g, name, v);
    recipe_step(w, m, g, settings_, name,
                [this](const Matrix& u, const NewtonSchulzSettings& settings, const std::string& parameter) {
                  return newton_schulz_in_pieces(u, cuts_.pieces(parameter), cuts_.by_rows(parameter), settings,
                                                 parameter);
                });
  }

 private:
  TpCuts cuts_;
};

class GramOrthogonalizer : public Orthogonalizer {
 public:
  explicit GramOrthogonalizer(const Layout& layout) : cuts_(layout) {}

  std::string name() const override { return "Muon, distributed Gram"; }
  std::unique_ptr<SerialOptimizer> reference(std::vector<NamedMatrix> parameters,
                                             const MuonSettings& settings) const override {
    return std::make_unique<SerialDistributedGram>(std::move(parameters), settings, cuts_);
  }

  Work begins(const DistMeta& meta, const MuonSettings& settings) const override {
    const Shape x = piece(meta);
    return {phases::orthogonalize, meta.parameter, meta.shape,
            newton_schulz_flops_of_piece(x.rows, x.cols, settings.newton_schulz.steps)};
  }

  Matrix orthogonal_slice(const StepContext& context, const MuonSettings& settings, const DistMeta& meta,
                          Matrix x) const override {
    const bool turned = meta.tp_split_dim == SplitDim::rows;
    const NewtonSchulzSettings chosen = settings_for_pieces(settings.newton_schulz, turned);

    if (turned) x = x.transposed();
    const double mine = squares_of_norm(x, turned, chosen, slice_name(meta, context.place.tp));
    divide_by_norm(x, sum_over_ranks(context.tp, mine), chosen);
    iterate_on_piece(context.tp, x, chosen);
    if (turned) x = x.transposed();
    return x;
  }

  void plan(Plan& plan, const DistMeta& meta, const MuonSettings& settings) const override {
    const bool bf16 = settings.newton_schulz.precision == Precision::bf16;
    const Index slice = meta.shape.size(), a = piece(meta).rows * piece(meta).rows;
    const auto turn = [&](std::string_view from, std::string_view to) {
      if (meta.tp_split_dim != SplitDim::rows) return;
      plan.take(slice, to);
      plan.give_back(slice, from);
    };
    turn("slice", "X");

    constexpr Index kNumber = sizeof(double);
    plan.call("tp", CollectiveKind::all_gather, ElementType::bytes, kNumber, kNumber * plan.grid.tp());

    const Index working = slice + (bf16 ? 3 : 2) * a;  // the next X, and A, B, in bf16 c A
    plan.take(working, "X, A, B");
    for (int step = 0; step < settings.newton_schulz.steps; ++step) {
      if (bf16) plan.take(a, "2-byte elements", ElementType::bfloat16);
      plan.call("tp", CollectiveKind::all_reduce, bf16 ? ElementType::bfloat16 : ElementType::float32, a, a);
      if (bf16) plan.give_back(a, "2-byte elements", ElementType::bfloat16);
    }
    plan.give_back(working, "X, A, B");
    turn("X", "slice");
  }

 private:
  // X_t: its rows are the side that TP does not cut.
  static Shape piece(const DistMeta& meta) {
    if (meta.tp_split_dim == SplitDim::rows) return {meta.shape.cols, meta.shape.rows};
    return meta.shape;
  }

  TpCuts cuts_;
};

// Refuses fused matrices: their pieces would have an A each.
std::unique_ptr<Optimizer> summing_gram(const Layout& layout, const MuonSettings& settings, int) {
  require_no_fused_matrices("distributed Gram", settings);
  if (settings.newton_schulz.gram)
    throw UsageError("distributed Gram sums X Xᵀ in every step, and --recipe gram in two; take another recipe");
  return std::make_unique<Muon>(settings, std::make_unique<GramOrthogonalizer>(layout));
}

}  // namespace

Strategy distributed_gram() { return {'g', "distributed Gram", owner_by_work().lay_out, summing_gram, 1, false}; }

}  // namespace muonwalk
