#include "lessons/lesson_20_pretrain/dealt_state.hpp"

#include "lessons/lesson_20_pretrain/resharding.hpp"
#include "lessons/lesson_20_pretrain/state_form.hpp"

namespace muonwalk::sim {
namespace {

std::vector<Layout> all_stages(const GptTraining& training, const Grid& grid) {
  std::vector<Layout> stages;
  for (int stage = 0; stage < grid.pp(); ++stage) stages.push_back(stage_layout(training, grid, stage));
  return stages;
}

GroupedOptimizer optimizer_of(const GptTraining& training) {
  return {training_groups(training), training_parameters(training)};
}

SavedState state_for(const GptTraining& training, const Grid& grid, const Place& place, const Checkpoint& checkpoint) {
  GroupedOptimizer optimizer = optimizer_of(training);
  return state_of(checkpoint, training_parameters(training, grid.tp()), stage_layout(training, grid, place.pp), place,
                  optimizer);
}

// A state of the right sizes, all zeros.
SavedState empty_state(const GptTraining& training, const Grid& grid, const Place& place) {
  GroupedOptimizer optimizer = optimizer_of(training);
  const Layout layout = stage_layout(training, grid, place.pp);
  optimizer.start(layout, place, zero_buckets(layout));
  return optimizer.save();
}

// Calls `work` with each flat piece of a state, in order.
template <class State, class Work>
void for_each_piece(State& state, const Work& work) {
  const auto all_of = [&work](auto& buckets) {
    for (auto& buffer : buckets)
      for (auto& bucket : buffer) work(bucket);
  };
  all_of(state.weights);
  for (auto& kept : state.kept) all_of(kept.buckets);
}

Index message_elements(const SavedState& state) {
  Index elements = 1;  // the steps
  for_each_piece(state, [&](const Flat& piece) { elements += static_cast<Index>(piece.size()); });
  return elements;
}

}  // namespace

std::optional<Checkpoint> gather_training(Communicator& world, const GptTraining& training, const Grid& grid,
                                          const Place& place, const SavedState& saved) {
  return gather_checkpoint(world, training_parameters(training, grid.tp()), all_stages(training, grid), place, saved);
}

Plan gather_training_plan(const GptTraining& training, const Grid& grid, const Place& place) {
  const std::vector<Layout> stages = all_stages(training, grid);
  std::vector<StateForm> forms;
  for (int stage = 0; stage < grid.pp(); ++stage) {
    GroupedOptimizer optimizer = optimizer_of(training);
    forms.push_back(
        StateForm::at(stages[static_cast<std::size_t>(stage)], grid.place(grid.rank(0, 0, stage)), optimizer));
  }
  return gather_checkpoint_plan(stages, forms, place);
}

SavedState deal_out(Communicator& world, const GptTraining& training, const Grid& grid, const Place& place,
                    const std::optional<Checkpoint>& checkpoint) {
  if (place.rank == 0) {
    for (int rank = 1; rank < grid.size(); ++rank) {
      const SavedState state = state_for(training, grid, grid.place(rank), *checkpoint);
      Flat message;
      message.reserve(static_cast<std::size_t>(message_elements(state)));
      for_each_piece(state, [&](const Flat& piece) { message.insert(message.end(), piece.begin(), piece.end()); });
      message.push_back(static_cast<float>(state.steps));  // float32 counts to 16,777,216
      world.send(message.data(), static_cast<Index>(message.size()), rank);
    }
    return state_for(training, grid, place, *checkpoint);
  }
  SavedState state = empty_state(training, grid, place);
  Flat message(static_cast<std::size_t>(message_elements(state)));
  world.recv(message.data(), static_cast<Index>(message.size()), 0);
  auto next = message.begin();
  for_each_piece(state, [&](Flat& piece) {
    std::copy(next, next + static_cast<std::ptrdiff_t>(piece.size()), piece.begin());
    next += static_cast<std::ptrdiff_t>(piece.size());
  });
  state.steps = static_cast<int>(*next);
  return state;
}

Plan deal_out_plan(const GptTraining& training, const Grid& grid, const Place& place) {
  Plan plan{grid, place, {}};
  const auto elements = [&](int rank) { return message_elements(empty_state(training, grid, grid.place(rank))); };
  if (place.rank > 0)
    plan.operations.push_back(Call{"world", CollectiveKind::recv, ElementType::float32, 0, elements(place.rank), 0});
  for (int rank = 1; place.rank == 0 && rank < grid.size(); ++rank)
    plan.operations.push_back(Call{"world", CollectiveKind::send, ElementType::float32, elements(rank), 0, rank});
  return plan;
}

void require_resumable(const Checkpoint& checkpoint, const GptTraining& training, const Grid& grid) {
  for (int stage = 0; stage < grid.pp(); ++stage)
    state_for(training, grid, grid.place(grid.rank(0, 0, stage)), checkpoint);
}

}  // namespace muonwalk::sim
