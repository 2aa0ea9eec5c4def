#include <string>

#include "src/train/pipeline/stage.hpp"

namespace muonwalk {
namespace {

// What the moves of a stage call and compute, in the order in which part_forward and part_backward do.
class StagePlanner {
 public:
  StagePlanner(const GptConfig& config, const Grid& grid, const Place& place, Index rows, int ep)
      : config_(config),
        part_(stage_part(config, grid.pp(), place.pp)),
        cut_(head_cut(config, grid.tp(), place.tp)),
        rows_(rows),
        tp_(grid.tp()),
        ep_(ep),
        stage_(place.pp),
        tied_(config.tied && grid.pp() > 1),
        plan_{grid, place, {}} {}

  void forward() {
    plan_.work(phases::forward, {rows_, config_.width}, flops());
    if (!part_.first) message(CollectiveKind::recv, stage_ - 1);
    if (part_.first) all_reduce(rows_ * config_.width);  // the rows of the embedding
    for (Index layer = 0; layer < part_.layers.size(); ++layer) {
      all_reduce(rows_ * config_.width);  // leave the attention
      feed_forward();                     // leave the feed-forward half
    }
    if (part_.last) all_gather(3 * own_pieces() * rows_);
    if (!part_.last) send("pp", to_next_, rows_ * config_.width, stage_ + 1);
  }

  void backward() {
    plan_.work(phases::backward, {rows_, config_.width}, 2 * flops());
    if (!part_.last) message(CollectiveKind::recv, stage_ + 1);
    if (tied_ && part_.first)
      plan_.operations.push_back(Call{kEnds, CollectiveKind::recv, ElementType::float32, 0, embedding_elements(), 1});
    if (part_.last) all_reduce(rows_ * config_.width);  // enter the output layer
    for (Index layer = 0; layer < part_.layers.size(); ++layer) {
      feed_forward();  // enter the feed-forward half
      if (cut_.replicated) {
        all_gather(cut_.width * config_.width);  // the key's gradient
        all_gather(cut_.width * config_.width);  // the value's
      }
      all_reduce(rows_ * config_.width);  // enter the attention
    }
    if (!part_.first) send("pp", to_previous_, rows_ * config_.width, stage_ - 1);
    if (tied_ && part_.last) send(kEnds, to_other_end_, embedding_elements(), 0);
  }

  Plan finished() {
    wait("pp", to_next_, stage_ + 1);
    wait("pp", to_previous_, stage_ - 1);
    if (tied_ && (part_.first || part_.last)) {
      plan_.work(phases::tied_embedding, {embedding_elements() / config_.width, config_.width});
      wait(kEnds, to_other_end_, 0);
      const Index size = embedding_elements();
      if (part_.first) plan_.operations.push_back(Call{kEnds, CollectiveKind::send, ElementType::float32, size, 0, 1});
      if (part_.last) plan_.operations.push_back(Call{kEnds, CollectiveKind::recv, ElementType::float32, 0, size, 0});
    }
    return std::move(plan_);
  }

 private:
  static constexpr const char* kEnds = "first and last stage";

  Index own_pieces() const { return config_.pieces / tp_; }
  Index embedding_elements() const { return config_.vocabulary / tp_ * config_.width; }

  // Of the products of one forward pass; a backward pass has each of them twice, for what came in and for the tensor.
  double flops() const {
    const auto rows = static_cast<double>(rows_), width = static_cast<double>(config_.width);
    const double kv = static_cast<double>(cut_.kv_heads * cut_.width), q = static_cast<double>(cut_.heads * cut_.width);
    const double experts = static_cast<double>(config_.experts);
    const double in_mlp = config_.experts == 0 ? rows : experts * static_cast<double>(config_.capacity(rows_));
    const double hidden = static_cast<double>(config_.hidden / tp_);
    // A token sees (tokens + 1) / 2 on average, of each head; once for the scores and once for the values.
    const double seen = (static_cast<double>(config_.tokens) + 1) / 2;
    const double layer =
        2 * rows * width * (2 * q + 2 * kv + experts) + 6 * in_mlp * width * hidden + 4 * rows * seen * q;
    const double output = part_.last ? 2 * rows * width * static_cast<double>(config_.vocabulary / tp_) : 0;
    return static_cast<double>(part_.layers.size()) * layer + output;
  }

  // Experts see the slots of all sources in turn, between two exchanges.
  void feed_forward() {
    if (config_.experts == 0) return all_reduce(rows_ * config_.width);
    const Index slots = config_.capacity(rows_) * config_.width;
    exchange(slots * config_.experts);
    for (Index expert = 0; expert < config_.experts; ++expert) all_reduce(slots);
    exchange(slots * config_.experts);
  }
  void exchange(Index count) {
    const Index others = count / ep_ * (ep_ - 1);
    if (ep_ > 1)
      plan_.call("ep " + std::to_string(ep_), CollectiveKind::all_to_all, ElementType::float32, others, others);
  }
  void all_reduce(Index count) { plan_.call("tp", CollectiveKind::all_reduce, ElementType::float32, count, count); }
  void all_gather(Index mine) { plan_.call("tp", CollectiveKind::all_gather, ElementType::float32, mine, mine * tp_); }
  void message(CollectiveKind kind, int peer) {
    plan_.operations.push_back(Call{"pp", kind, ElementType::float32, 0, rows_ * config_.width, peer});
  }
  // A posted send waits for the one before it.
  void send(const char* group, bool& under_way, Index count, int peer) {
    wait(group, under_way, peer);
    plan_.operations.push_back(Call{group, CollectiveKind::send, ElementType::float32, count, 0, peer});
    under_way = true;
  }
  void wait(const char* group, bool& under_way, int peer) {
    if (under_way) plan_.operations.push_back(Call{group, CollectiveKind::wait, ElementType::float32, 0, 0, peer});
    under_way = false;
  }

  const GptConfig& config_;
  ModelPart part_;
  HeadCut cut_;
  Index rows_;
  int tp_, ep_, stage_;
  bool tied_;
  bool to_next_ = false, to_previous_ = false, to_other_end_ = false;
  Plan plan_;
};

}  // namespace

Plan stage_plan(const GptConfig& config, const Grid& grid, const Place& place, PipelineSchedule schedule,
                int micro_batches, Index rows, int ep) {
  StagePlanner planner(config, grid, place, rows, ep);
  for (const PipelineMove move : pipeline_moves(schedule, grid.pp(), place.pp, micro_batches)) {
    if (move.kind == PipelineMove::Kind::forward)
      planner.forward();
    else
      planner.backward();
  }
  return planner.finished();
}

Index activation_elements(const GptConfig& config, const ModelPart& part, int tp, Index rows) {
  const HeadCut cut = head_cut(config, tp, 0);
  const Index in_mlp = 3 * (config.hidden / tp);  // gate, up, hidden
  // With experts their inputs and outputs, and how a row is shared, besides; all of them for each slot.
  const Index slots = config.experts * (config.experts == 0 ? 0 : config.capacity(rows));
  const Index mlps = config.experts == 0 ? rows * in_mlp : slots * (in_mlp + 2 * config.width) + rows * config.experts;
  // x, normed, middle, middle_normed; two roots; query, mixed, key, value; probabilities.
  const Index layer =
      4 * config.width + 2 + 2 * cut.heads * cut.width + 2 * cut.kv_heads * cut.width + cut.heads * config.tokens;
  // x, normed; a root; logits; most and sum; losses.
  const Index end = part.last ? 2 * config.width + 1 + config.vocabulary / tp + 2 + 1 : 0;
  return part.layers.size() * (rows * layer + mlps) + rows * end;
}

}  // namespace muonwalk
