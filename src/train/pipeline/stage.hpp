#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "src/comm/communicator.hpp"
#include "src/model/gpt.hpp"
#include "src/model/sharers.hpp"
#include "src/numerics/matrix.hpp"
#include "src/optim/plan.hpp"
#include "src/train/pipeline/schedule.hpp"

namespace muonwalk {

/// The ranks of a TP group, which share every layer: the two conjugate operations as all-reduces over the group. Where
/// experts are dealt out, rows go to them and back by an all-to-all over the EP group.
class TpSharers : public Sharers {
 public:
  /// `tp` and `ep` must outlive it; without `ep`, this rank has all experts.
  explicit TpSharers(Communicator& tp, int threads = 1, Communicator* ep = nullptr)
      : tp_(tp), threads_(threads), ep_(ep) {}

  int size() const override { return tp_.size(); }
  int rank() const override { return tp_.rank(); }
  int threads() const override { return threads_; }
  void enter_backward(Matrix& gradient) const override { tp_.all_reduce(gradient.data(), gradient.size()); }
  void leave_forward(Matrix& partial) const override { tp_.all_reduce(partial.data(), partial.size()); }
  Matrix all_gather_rows(Matrix mine) const override {
    Matrix all(mine.rows() * tp_.size(), mine.cols());
    tp_.all_gather(mine.data(), mine.size(), all.data());
    return all;
  }
  int experts_over() const override { return ep_ == nullptr ? 1 : ep_->size(); }
  // A rank's own part is not sent: it waits behind the others.
  Matrix exchange_rows(Matrix rows) const override {
    if (ep_ == nullptr) return rows;
    const Index part = rows.size() / ep_->size();
    std::vector<Index> counts(static_cast<std::size_t>(ep_->size()), part);
    counts[static_cast<std::size_t>(ep_->rank())] = 0;
    float *own = rows.data() + ep_->rank() * part, *end = rows.data() + rows.size();
    std::rotate(own, own + part, end);
    Flat others(static_cast<std::size_t>(rows.size() - part));
    ep_->all_to_all_v(rows.data(), counts, others.data(), counts);
    std::copy(others.begin(), others.end(), rows.data());
    std::rotate(own, end - part, end);
    return rows;
  }

 private:
  Communicator& tp_;
  int threads_;
  Communicator* ep_;
};

/// Matrices on their way to other ranks of a group, one at a time: a matrix must stay until it has been taken, and
/// before the next one goes, the one before has to be there. So the sender goes on with its work, and holds one matrix
/// more.
class Outbox {
 public:
  /// `group` must outlive it.
  explicit Outbox(Communicator& group) : group_(group) {}

  /// Waits for the matrix before, and posts this one to a rank of the group.
  void send(Matrix values, int peer);
  /// Waits until what was sent has been taken; at once where there is nothing.
  void wait();

 private:
  Communicator& group_;
  Matrix values_;
  std::optional<Transfer> under_way_;
};

/// A matrix of this shape from a rank of the group: waits until it is there.
Matrix received(Communicator& group, Index rows, Index cols, int peer);

/// The part of a model that stage `stage` of `stages` holds: its layers (split_layers), and the embedding or the output
/// layer at the ends. Throws UsageError as split_layers does.
ModelPart stage_part(const GptConfig& config, int stages, int stage);

/// Where a rank's micro-batches lie among those of a batch, which are numbered over the whole grid: DP rank r has an
/// equal range of them, the r-th. Throws UsageError, one sentence that names --micro-batches, unless every DP rank gets
/// as many and their sums make whole subtrees of the sum over all (a power of two for each, or one DP rank).
Range own_micro_batches(int micro_batches, int dp, int dp_rank);

/// What a stage needs to know of the rank that computes it.
struct StageContext {
  const GptConfig& config;  ///< The sizes of the whole model.
  Grid grid;                ///< The grid of all ranks.
  Place place;              ///< The rank's own place.
  Communicator& tp;         ///< The rank's tensor-parallel group, which shares every layer.
  Communicator& pp;         ///< The rank's pipeline, stage by stage.
  /// First and last stage of its pipeline, where a tied embedding lies on both of them; else null.
  Communicator* ends = nullptr;
  int threads = 1;  ///< OpenMP threads in products
  /// Is told of each move as its work begins, when what it needs has come, and as it ends; may be empty.
  std::function<void(PipelineMove move, bool ends)> observe = nullptr;
  Communicator* ep = nullptr;  ///< The DP ranks that experts are dealt out to, at least two; null: this rank has all.
};

/// Forward and backward through a stage for all of this rank's micro-batches, in the order of a schedule. Each loss
/// counts `scale` times in the gradients. Activations come from the stage before and go to the next one, their
/// gradients the other way; sends are posted, and at most one in each direction is not taken yet.
///
/// A tied embedding lies on the first and on the last stage. Its gradient has two shares in every micro-batch, and it
/// is their sum that is a leaf; so the last stage sends its share to the first one, micro-batch by micro-batch, and
/// gets the sum over all of them back. (To add the two sums once, after the last micro-batch, would take one message
/// in each direction, and an order of additions that one process does not have.)
PartGradients run_stage(const StageContext& context, const PartTensors& tensors, PipelineSchedule schedule,
                        const std::vector<MicroBatch>& micro_batches, float scale);

/// The phases of a stage's plan.
namespace phases {
/// Each is announced as a move begins.
/// @{
constexpr Phase forward = "forward";
constexpr Phase backward = "backward";
constexpr Phase tied_embedding = "tied embedding";
/// @}
}  // namespace phases

/// What run_stage does on the rank at `place`, as a list: the calls of every move, and its products' FLOPs. Each
/// micro-batch has `rows` tokens. Experts are dealt out to `ep` ranks.
Plan stage_plan(const GptConfig& config, const Grid& grid, const Place& place, PipelineSchedule schedule,
                int micro_batches, Index rows, int ep = 1);

/// The elements that a stage keeps of a micro-batch of `rows` tokens from its forward to its backward pass: its
/// activations, on one of `tp` ranks.
Index activation_elements(const GptConfig& config, const ModelPart& part, int tp, Index rows);

}  // namespace muonwalk
