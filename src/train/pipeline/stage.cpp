#include "src/train/pipeline/stage.hpp"

#include <fmt/format.h>

#include <iterator>
#include <optional>
#include <stdexcept>
#include <utility>

#include "src/errors.hpp"
#include "src/numerics/tree_sum.hpp"

namespace muonwalk {
namespace {

// The gradients of a stage, where those of its experts come once for each source of rows: all of them for the first
// source, then for the next.
std::vector<Matrix> sum_over_sources(const PartTensors& tensors, Index sources, std::vector<Matrix> gradients) {
  std::vector<Matrix> all;
  auto next = gradients.begin();
  const auto keep = [&](std::ptrdiff_t count) {
    all.insert(all.end(), std::move_iterator(next), std::move_iterator(next + count)), next += count;
  };
  keep(tensors.embedding.empty() ? 0 : 1);
  for (const LayerTensors& layer : tensors.layers) {
    keep(7);  // two norms, four of the attention, the router
    const auto own = 3 * static_cast<Index>(layer.experts.size());
    for (Index i = 0; i < own; ++i)
      all.push_back(sum_of_leaves(sources, [&](Index source) { return std::move(next[source * own + i]); }));
    next += sources * own;
  }
  keep(gradients.end() - next);
  return all;
}

}  // namespace

void Outbox::send(Matrix values, int peer) {
  wait();
  values_ = std::move(values);
  under_way_.emplace(group_.isend(values_.data(), values_.size(), peer));
}

void Outbox::wait() {
  if (!under_way_) return;
  under_way_->wait();
  under_way_.reset();
  values_ = Matrix();
}

Matrix received(Communicator& group, Index rows, Index cols, int peer) {
  Matrix values(rows, cols);
  group.recv(values.data(), values.size(), peer);
  return values;
}

ModelPart stage_part(const GptConfig& config, int stages, int stage) {
  return {split_layers(static_cast<int>(config.layers), stages, stage), stage == 0, stage == stages - 1};
}

Range own_micro_batches(int micro_batches, int dp, int dp_rank) {
  const int each = micro_batches / dp;
  const bool whole_subtrees = dp == 1 || (each > 0 && (each & (each - 1)) == 0);
  if (micro_batches < 1 || each * dp != micro_batches || !whole_subtrees)
    throw UsageError(fmt::format(
        "--micro-batches {} can't be dealt out to {} data-parallel ranks; each of them needs 1, 2, 4, 8, … of them: "
        "try --micro-batches {} or {}",
        micro_batches, dp, dp, 2 * dp));
  return {each * dp_rank, each * (dp_rank + 1)};
}

PartGradients run_stage(const StageContext& c, const PartTensors& tensors, PipelineSchedule schedule,
                        const std::vector<MicroBatch>& micro_batches, float scale) {
  const int stages = c.grid.pp(), stage = c.place.pp;
  const ModelPart part = stage_part(c.config, stages, stage);
  const TpSharers sharers(c.tp, c.threads, c.ep);
  const RotaryAngles angles = rotary_angles(c.config);
  const PartWorker worker = {c.config, part, sharers, angles};
  const bool tied = c.config.tied && stages > 1;
  if (tied && (part.first || part.last) && c.ends == nullptr)
    throw std::invalid_argument("a tied embedding on two stages needs the group of first and last stage");

  Outbox to_next(c.pp), to_previous(c.pp);
  std::optional<Outbox> to_other_end;
  if (tied && (part.first || part.last)) to_other_end.emplace(*c.ends);
  std::vector<PartSaved> activations(micro_batches.size());
  RunningTreeSum gradients;
  Flat losses;

  for (const PipelineMove move : pipeline_moves(schedule, stages, stage, static_cast<int>(micro_batches.size()))) {
    const auto number = static_cast<std::size_t>(move.micro_batch);
    const MicroBatch& tokens = micro_batches[number];
    const auto rows = static_cast<Index>(tokens.inputs.size());
    PartSaved& saved = activations[number];
    const auto begin = [&] {  // the work itself: what it needs is there
      if (c.observe) c.observe(move, false);
    };

    if (move.kind == PipelineMove::Kind::forward) {
      Matrix x;
      if (!part.first) x = received(c.pp, rows, c.config.width, stage - 1);
      begin();
      x = part_forward(worker, tensors, tokens, std::move(x), saved);
      if (part.last)
        losses.push_back(tree_sum(saved.losses.data(), rows));
      else
        to_next.send(std::move(x), stage + 1);
    } else {
      Matrix d;
      if (!part.last) d = received(c.pp, rows, c.config.width, stage + 1);
      PartTensors leaf = zeros_like(tensors, sharers.experts_over());
      // The share of the output layer comes first in the sum, as on a process that has both.
      if (tied && part.first) leaf.embedding = received(*c.ends, leaf.embedding.rows(), c.config.width, 1);
      begin();
      d = part_backward(worker, tensors, tokens, scale, std::move(d), saved, leaf);
      if (!part.first) to_previous.send(std::move(d), stage - 1);
      if (tied && part.last) {
        to_other_end->send(std::move(leaf.output), 0);
        leaf.output = Matrix();
      }
      std::vector<Matrix> matrices;
      for_each_tensor(leaf, [&](Matrix& tensor) { matrices.push_back(std::move(tensor)); });
      gradients.add(move.micro_batch, std::move(matrices));
    }
    if (c.observe) c.observe(move, true);
  }
  to_next.wait();
  to_previous.wait();

  PartGradients all{gradients.take(), tree_sum(losses.data(), static_cast<Index>(losses.size()))};
  if (c.ep != nullptr) all.gradients = sum_over_sources(tensors, c.ep->size(), std::move(all.gradients));
  // The first stage has the whole gradient of a tied embedding, and the last one needs it too.
  if (to_other_end) to_other_end->wait();
  if (tied && part.first) c.ends->send(all.gradients.front().data(), all.gradients.front().size(), 1);
  if (tied && part.last) all.gradients.push_back(received(*c.ends, tensors.output.rows(), c.config.width, 0));
  return all;
}

}  // namespace muonwalk
