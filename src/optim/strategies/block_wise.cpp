// (h) Every TP rank orthogonalizes its own slice as if it were a matrix, so that nothing travels over tp; every
// kBlockWisePeriod-th step is that of (f). Megatron-LM can leave out the full steps as well (tp_mode "blockwise");
// MuonBP takes them from time to time, to keep training stable.
//
// Slices that are orthogonal do not make an orthogonal matrix: this is another optimizer, and its reference is one
// process that steps the same blocks. A block is scaled by its own shape, and the whole matrix in a full step by the
// whole shape, as Megatron-LM does both (megatron/core/optimizer/emerging_optimizers.py, TensorParallelMuon: with
// tp_mode "blockwise" it leaves out the size of TP, by which it multiplies the cut side for the scale in the other
// modes). MuonBP (Khaled et al., 2025, arXiv 2510.16981) has two learning rates, one for each kind of step; here they
// are one.
#include <utility>

#include "src/optim/full_step.hpp"
#include "src/optim/serial_muon.hpp"
#include "src/optim/strategies/strategy.hpp"
#include "src/optim/strategies/tp_cuts.hpp"

namespace muonwalk {
namespace {

// Whether the step that follows `steps` others takes whole matrices.
bool is_full(int steps) { return steps % kBlockWisePeriod == 0; }

// The step in which every slice is a matrix of its own.
class BlockOrthogonalizer : public Orthogonalizer {
 public:
  Work begins(const DistMeta& meta, const MuonSettings& settings) const override {
    return {phases::orthogonalize, meta.parameter, meta.shape,
            newton_schulz_flops(meta.shape.rows, meta.shape.cols, settings.newton_schulz)};
  }

  Matrix orthogonal_slice(const StepContext& context, const MuonSettings& settings, const DistMeta& meta,
                          Matrix block) const override {
    return orthogonalize(block, settings, slice_name(meta, context.place.tp));
  }

  void plan(Plan& plan, const DistMeta& meta, const MuonSettings& settings) const override {
    const Index working = newton_schulz_elements(meta.shape, settings.newton_schulz);
    plan.take(working, "X, A, B");
    plan.give_back(working, "X, A, B");
  }

  std::vector<RangeOfPiece> scaled(const DistMeta& meta, int, Range owned, const MuonSettings&) const override {
    return {{owned, meta.shape}};
  }
};

class SerialBlockWise : public SerialMuon {
 public:
  SerialBlockWise(std::vector<NamedMatrix> parameters, MuonSettings settings, TpCuts cuts, int steps)
      : SerialMuon(std::move(parameters), std::move(settings)), cuts_(std::move(cuts)), steps_(steps) {}

  void step(const std::vector<std::vector<Matrix>>& gradients) override {
    SerialMuon::step(gradients);
    ++steps_;
  }

 protected:
  void matrix_step(Matrix& w, Matrix& m, const Matrix& g, const std::string& name, Flat*) override {
    const int blocks = is_full(steps_) ? 1 : cuts_.pieces(name);
    const bool by_rows = cuts_.by_rows(name);
    const Index rows = by_rows ? w.rows() / blocks : w.rows(), cols = by_rows ? w.cols() : w.cols() / blocks;
    for (int t = 0; t < blocks; ++t) {
      const Index first_row = by_rows ? t * rows : 0, first_col = by_rows ? 0 : t * cols;
      Matrix block_w(rows, cols), block_m(rows, cols), block_g(rows, cols);
      for (Index i = 0; i < rows; ++i)
        for (Index j = 0; j < cols; ++j) {
          block_w(i, j) = w(first_row + i, first_col + j);
          block_m(i, j) = m(first_row + i, first_col + j);
          block_g(i, j) = g(first_row + i, first_col + j);
        }
      recipe_step(block_w, block_m, block_g, settings_, name);  // as if it were a parameter
      for (Index i = 0; i < rows; ++i)
        for (Index j = 0; j < cols; ++j) {
          w(first_row + i, first_col + j) = block_w(i, j);
          m(first_row + i, first_col + j) = block_m(i, j);
        }
    }
  }

 private:
  TpCuts cuts_;
  int steps_;
};

// As it is after `steps` steps; started, it goes on counting from there. Refuses fused matrices: TP cuts their pieces.
class BlockWise : public Muon {
 public:
  BlockWise(const MuonSettings& settings, const Layout& layout, int steps)
      : Muon(settings), cuts_(layout), first_step_(steps) {
    steps_ = steps;
    require_no_fused_matrices("block-wise Muon", settings);
  }

  std::string name() const override { return "Muon, block-wise"; }
  void start(const Layout& layout, const Place& place, Buckets weights) override {
    Muon::start(layout, place, std::move(weights));
    steps_ = first_step_;
  }
  std::unique_ptr<SerialOptimizer> reference(std::vector<NamedMatrix> parameters) const override {
    return std::make_unique<SerialBlockWise>(std::move(parameters), settings_of_reference(), cuts_, steps_);
  }

 protected:
  const Orthogonalizer& orthogonalizer() const override {
    static const BlockOrthogonalizer way;
    return is_full(steps_) ? Muon::orthogonalizer() : way;
  }

 private:
  TpCuts cuts_;
  int first_step_;
};

std::unique_ptr<Optimizer> stepping_blocks(const Layout& layout, const MuonSettings& settings, int steps) {
  MuonSettings chosen = settings;
  chosen.gather_unrounded = true;  // in full steps, as (f)
  return std::make_unique<BlockWise>(chosen, layout, steps);
}

}  // namespace

Strategy block_wise() { return {'h', "block-wise", owner_by_work().lay_out, stepping_blocks, kBlockWisePeriod, false}; }

}  // namespace muonwalk
