// (h) Every TP rank orthogonalizes its own slice as if it were a matrix, so that nothing travels over tp; every
// kBlockWisePeriod-th step is that of (f). Megatron-LM can leave out the full steps as well (tp_mode "blockwise");
// MuonBP takes them from time to time, to keep training stable.
#include "src/optim/strategies/block_wise.hpp"

#include <fmt/format.h>

#include <utility>

#include "src/errors.hpp"
#include "src/optim/serial_muon.hpp"

namespace muonwalk {
namespace {

// The step in which every slice is a matrix of its own.
class BlockOrthogonalizer : public DuplicatedOrthogonalizer {
 public:
  Work begins(const DistMeta& meta, const MuonSettings& settings) const override {
    if (!cut_by_tp(meta)) return DuplicatedOrthogonalizer::begins(meta, settings);
    return {phases::orthogonalize, meta.parameter, meta.shape,
            newton_schulz_flops(meta.shape.rows, meta.shape.cols, settings.newton_schulz.steps)};
  }

  Matrix orthogonal_slice(const StepContext& context, const MuonSettings& settings, const DistMeta& meta,
                          Matrix block) const override {
    if (!cut_by_tp(meta)) return DuplicatedOrthogonalizer::orthogonal_slice(context, settings, meta, std::move(block));
    return orthogonalize(block, settings, slice_name(meta, context.place.tp));
  }

  void plan(Plan& plan, const DistMeta& meta, const MuonSettings& settings) const override {
    if (!cut_by_tp(meta)) return DuplicatedOrthogonalizer::plan(plan, meta, settings);
    const Index working = newton_schulz_elements(meta.shape, settings.newton_schulz.precision);
    plan.take(working, "X, A, B");
    plan.give_back(working, "X, A, B");
  }

  std::vector<RangeOfPiece> scaled(const DistMeta& meta, int, Range owned, const MuonSettings&) const override {
    return {{owned, meta.shape}};
  }
};

class SerialBlockWise : public SerialMuon {
 public:
  SerialBlockWise(std::vector<NamedMatrix> parameters, MuonSettings settings, TpCuts cuts, int period, int steps)
      : SerialMuon(std::move(parameters), std::move(settings)),
        cuts_(std::move(cuts)),
        period_(period),
        steps_(steps) {}

  void step(const std::vector<std::vector<Matrix>>& gradients) override {
    SerialMuon::step(gradients);
    ++steps_;
  }

 protected:
  void matrix_step(Matrix& w, Matrix& m, const Matrix& g, const std::string& name, Flat*) override {
    const int blocks = steps_ % period_ == 0 ? 1 : cuts_.pieces(name);
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
  int period_;
  int steps_;
};

std::unique_ptr<Optimizer> stepping_blocks(const Layout& layout, const MuonSettings& settings, int steps) {
  MuonSettings chosen = settings;
  chosen.gather_unrounded = true;  // in full steps, as (f)
  return std::make_unique<BlockWise>(chosen, TpCuts(layout), kBlockWisePeriod, steps);
}

}  // namespace

BlockWise::BlockWise(const MuonSettings& settings, TpCuts cuts, int period, int steps)
    : Muon(settings), cuts_(std::move(cuts)), period_(period), first_step_(steps) {
  steps_ = steps;
  require_no_fused_matrices("block-wise Muon", settings);
  if (period < 1)
    throw UsageError(
        fmt::format("a full step in every {} steps makes no sense for block-wise Muon; it takes at least 1", period));
}

void BlockWise::start(const Layout& layout, const Place& place, Buckets weights) {
  Muon::start(layout, place, std::move(weights));
  steps_ = first_step_;
}

const Orthogonalizer& BlockWise::orthogonalizer() const {
  static const BlockOrthogonalizer way;
  return steps_ % period_ == 0 ? duplicated_orthogonalizer() : way;
}

std::unique_ptr<SerialOptimizer> BlockWise::reference(std::vector<NamedMatrix> parameters) const {
  return std::make_unique<SerialBlockWise>(std::move(parameters), settings_of_reference(), cuts_, period_, steps_);
}

Strategy block_wise() {
  return {'h', "block-wise", "Megatron-LM, MuonBP", owner_by_work().lay_out, stepping_blocks, kBlockWisePeriod, false};
}

}  // namespace muonwalk
