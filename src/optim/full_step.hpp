#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/optim/fused_matrix.hpp"
#include "src/optim/optimizer.hpp"
#include "src/optim/plan.hpp"
#include "src/optim/serial_muon.hpp"
#include "src/optim/steps.hpp"

namespace muonwalk {

/// What the ranks of a TP group do about one matrix: from a rank's TP slice of the update to its TP slice of the
/// orthogonal matrix. The other steps of Muon are elementwise, or about DP, so full_step and its plan are the same for
/// every orthogonalizer.
///
/// This is the plain one: TP gather → Newton–Schulz → TP shard (full_step.cpp). All ranks of the TP group gather the
/// whole matrix, and then each of them does the same Newton–Schulz. Others are derived from it. Where TP does not cut a
/// matrix, there is nothing to gather: full_step takes the plain one for it, whichever it was given.
class Orthogonalizer {
 public:
  virtual ~Orthogonalizer() = default;
  /// The name of Muon with it.
  virtual std::string name() const { return "Muon"; }
  /// The program on one process whose bits Muon has with it.
  virtual std::unique_ptr<SerialOptimizer> reference(std::vector<NamedMatrix> parameters,
                                                     const MuonSettings& settings) const {
    return std::make_unique<SerialMuon>(std::move(parameters), settings);
  }
  /// The phase with which it begins, as a plan lists it. full_step announces it, then takes the slice from its bucket.
  virtual Work begins(const DistMeta& meta, const MuonSettings& settings) const;
  /// From this rank's slice of the update to that of the orthogonal matrix, both of meta.shape. Announces all phases
  /// but the first. Throws UsageError, naming the parameter, on NaN or infinity.
  virtual Matrix orthogonal_slice(const StepContext& context, const MuonSettings& settings, const DistMeta& meta,
                                  Matrix slice) const;
  /// Lists what that does. The slice is held before and after, and the first phase is listed already.
  virtual void plan(Plan& plan, const DistMeta& meta, const MuonSettings& settings) const;
  /// Whether work_together handles this matrix; then matrix_step only applies what that has left.
  virtual bool works_together_on(const DistMeta&) const { return false; }
  /// Once per bucket: the elements of such matrices in `update` become those of the orthogonal matrices. `update` is
  /// the buffer from element `begin` on: the bucket where it was gathered, else this rank's shard.
  virtual void work_together(const StepContext&, const MuonSettings&, BucketNumber, Flat& /*update*/,
                             Index /*begin*/) const {}
  /// Lists what that does.
  virtual void plan_together(Plan&, const Layout&, const MuonSettings&, BucketNumber) const {}
  /// By which shape `apply` scales which elements of the range `owned` of TP rank `tp_rank`'s slice: by that of the
  /// whole matrix, or of the piece of a fused one.
  virtual std::vector<RangeOfPiece> scaled(const DistMeta& meta, int tp_rank, Range owned,
                                           const MuonSettings& settings) const {
    return by_pieces(meta, tp_rank, owned, settings.fused);
  }
};

/// A plain one that everybody may use: it holds nothing.
const Orthogonalizer& plain_orthogonalizer();

/// The middle of that, on a matrix that is whole: Newton–Schulz on it or on its pieces, then the division by its second
/// moment, if it has one.
Matrix orthogonalize_gathered(const StepContext& context, const MuonSettings& settings, const DistMeta& meta,
                              Matrix matrix);
/// Lists the Newton–Schulz of that.
void plan_orthogonalize_gathered(Plan& plan, const DistMeta& meta, const MuonSettings& settings);

/// Whether TP cuts this matrix into slices that are smaller than the whole.
inline bool cut_by_tp(const DistMeta& meta) { return meta.shape != meta.full_shape; }

/// What Newton–Schulz holds besides its input, in elements: the matrix's wide copy X and the next X; and A and B, each
/// m × m with the shorter side m. In bf16 c A is rounded, so it needs a place of its own. With `gram`, Q and the next
/// of Q and R need two more.
Index newton_schulz_elements(Shape full, const NewtonSchulzSettings& settings);

/// What one rank keeps of Muon between steps.
struct MuonState {
  Buckets weights;              ///< TP slices of all parameters, in whole buckets, the same on every DP rank.
  Buckets momentum;             ///< DP shards: what the rank owns of each bucket.
  Buckets second_moments = {};  ///< One list, or none: StepContext::second_moments.
};

/// The means of settings.second_moment before the first step, all zero: by the number of the parameter, those of every
/// matrix of which the rank at `place` owns an element, and so orthogonalizes all of it. Without a second moment there
/// is no list.
Buckets zero_second_moments(const Layout& layout, const Place& place, const MuonSettings& settings);

/// The phases of a step of Muon, in order.
namespace phases {
/// Each announced to the observer as it begins.
/// @{
constexpr Phase reduce_gradients = "reduce-scatter of gradients";
constexpr Phase momentum = "momentum";
constexpr Phase dp_gather = "DP gather";
constexpr Phase tp_gather = "TP gather";
constexpr Phase orthogonalize = "Newton–Schulz";
constexpr Phase tp_shard = "TP shard";
constexpr Phase dp_shard = "DP shard";
constexpr Phase apply = "apply";
constexpr Phase gather_weights = "all-gather of weights";
/// @}
}  // namespace phases

/// Whether a step gathers whole buckets: as the settings say, but never where every rank owns whole matrices.
inline bool gathers_buckets(const Layout& layout, const MuonSettings& settings) {
  return settings.gather == Gather::buckets && !layout.whole_matrices();
}

/// One complete step of distributed Muon ("Muon is Scalable for LLM Training", Liu et al. 2025, Algorithm 1), bucket by
/// bucket: reduce-scatter this rank's own `gradients` (whole buckets; the sum over DP ranks is what counts), or take
/// its shards of the sum where settings.summed_gradients says that they are that; momentum on the DP shard, DP gather
/// of the bucket where gathers_buckets says so; then, for each parameter of which this rank owns an element: DP gather
/// of it alone where it is cut and nothing was gathered, TP gather, Newton–Schulz, TP shard, DP shard, apply; then the
/// all-gather of the new weights. From TP gather to TP shard it does what `orthogonalizer` does, if that does not work
/// on matrices of the bucket together.
void full_step(const StepContext& context, const MuonSettings& settings, const BucketsView& gradients, MuonState& state,
               const Orthogonalizer& orthogonalizer = plain_orthogonalizer());

// The parts of it, for steps in another order.

/// The reduce-scatter and the momentum of one bucket: this rank's DP shard of the update.
Flat own_update(const StepContext& context, const MuonSettings& settings, const BucketsView& gradients,
                MuonState& state, BucketNumber bucket);

/// The work on one matrix, if this rank owns an element of it: from its TP slice in `update`, whose first element is
/// number `begin` of the buffer, to its new weights.
void matrix_step(const StepContext& context, const MuonSettings& settings, const DistMeta& meta, const Flat& update,
                 Index begin, MuonState& state, const Orthogonalizer& orthogonalizer = plain_orthogonalizer());

/// New weights for what this rank owns of a matrix, from the same elements of the orthogonal matrix. The monitor is
/// told of them.
void apply_owned(const StepContext& context, const MuonSettings& settings, const DistMeta& meta,
                 const float* orthogonal, MuonState& state, const Orthogonalizer& orthogonalizer);

/// The beginning of a plan: what the step is handed and what Muon keeps. Then what own_update does, and matrix_step, on
/// a matrix of which the rank owns an element; listed in the plan of their rank.
/// @{
Plan plan_of_muon_held(const Layout& layout, const Place& place, const MuonSettings& settings);
void plan_own_update(Plan& plan, const Layout& layout, const MuonSettings& settings, BucketNumber bucket);
void plan_matrix_step(Plan& plan, const Layout& layout, const MuonSettings& settings, const DistMeta& meta,
                      const Orthogonalizer& orthogonalizer = plain_orthogonalizer());
/// @}

/// What full_step does on the rank at `place`, as a list, from the layout alone. It begins with what the rank holds
/// when the step begins: weights, gradients and momentum.
Plan muon_plan(const Layout& layout, const Place& place, const MuonSettings& settings,
               const Orthogonalizer& orthogonalizer = plain_orthogonalizer());

/// Muon as an optimizer: full_step with the same settings in every step, and with an orthogonalizer that says what TP
/// groups do.
class Muon : public Optimizer {
 public:
  /// Takes nothing yet.
  explicit Muon(const MuonSettings& settings,
                std::unique_ptr<const Orthogonalizer> orthogonalizer = std::make_unique<Orthogonalizer>())
      : settings_(settings), orthogonalizer_(std::move(orthogonalizer)), unscaled_lr_(settings.lr) {}

  std::string name() const override { return orthogonalizer_->name(); }
  void start(const Layout& layout, const Place& place, Buckets weights) override;
  void step(const StepContext& context, const BucketsView& gradients) override;
  Plan plan(const Layout& layout, const Place& place) const override {
    return muon_plan(layout, place, settings_, orthogonalizer());
  }
  BucketsView weights() const override { return state_.weights; }
  bool takes_summed_gradients() const override { return settings_.summed_gradients; }
  void scale_learning_rates(float factor) override { settings_.lr = scaled_rate(unscaled_lr_, factor); }
  std::unique_ptr<SerialOptimizer> reference(std::vector<NamedMatrix> parameters) const override {
    return orthogonalizer_->reference(std::move(parameters), settings_of_reference());
  }

 protected:
  /// How the next step orthogonalizes.
  virtual const Orthogonalizer& orthogonalizer() const { return *orthogonalizer_; }
  /// The settings of a reference: the learning rate as it was given, and one thread, because the process that compares
  /// forks, and one that forks must have no threads.
  MuonSettings settings_of_reference() const;

  MuonSettings settings_;  ///< The settings of the next step.
  MuonState state_;        ///< The state after the last step.
  int steps_ = 0;          ///< How many steps were taken.

  StateTensors state_tensors() override;

 private:
  std::unique_ptr<const Orthogonalizer> orthogonalizer_;
  float unscaled_lr_;  // as it was given
};

}  // namespace muonwalk
