#include "lessons/lesson_20_pretrain/resharding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <stdexcept>
#include <utility>

#include "src/errors.hpp"
#include "src/text/names.hpp"

namespace muonwalk {
namespace {

constexpr int kRoot = 0;

// Every bucket of everything that the ranks of a stage hold, in the order in which they are gathered.
template <class Visit>
void for_each_bucket(const Layout& layout, const StateForm& form, const Visit& visit) {
  for (std::size_t held = 0; held < form.held.size(); ++held)
    for (const BucketNumber& number : buckets_of(layout, form.held[held])) visit(held, number);
}

// A rank that gives something of a bucket.
struct Giver {
  Place place;
  std::vector<ParameterPart> parts;
};

// Those of a stage, in the order of their ranks.
std::vector<Giver> givers_of(const Layout& layout, int stage, const HeldForm& form, BucketNumber number) {
  std::vector<Giver> givers;
  for (int dp = 0; dp < layout.grid.dp(); ++dp)
    for (int tp = 0; tp < layout.grid.tp(); ++tp) {
      const Place place = layout.grid.place(layout.grid.rank(dp, tp, stage));
      std::vector<ParameterPart> parts = parts_given(layout, form, number, place);
      if (!parts.empty()) givers.push_back({place, std::move(parts)});
    }
  return givers;
}

void require_layouts(const std::vector<Parameter>& model, const std::vector<Layout>& stages) {
  std::map<std::string, Shape> missing;
  for (const Parameter& parameter : model) missing[parameter.name] = parameter.shape;
  const std::map<std::string, Shape> shapes = missing;
  for (const Layout& layout : stages) {
    if (!(layout.grid == stages[0].grid) || layout.grid.pp() != static_cast<int>(stages.size()))
      throw std::invalid_argument(
          fmt::format("gather_checkpoint was given {} layouts, for {} and {}; it takes one for "
                      "each stage of one grid.",
                      stages.size(), stages[0].grid.text(), layout.grid.text()));
    for (const DistMeta& meta : layout.parameters()) {
      const auto found = shapes.find(meta.name);
      if (found == shapes.end() || found->second != meta.full_shape)
        throw std::invalid_argument("gather_checkpoint was given a layout with " + in_quotes(meta.name) +
                                    ", which is not in the model, or of another shape.");
      missing.erase(meta.name);
    }
  }
  if (!missing.empty())
    throw std::invalid_argument("gather_checkpoint was given layouts without " + in_quotes(missing.begin()->first) +
                                ", which is in the model.");
}

void require_sizes(const Layout& layout, const StateForm& form, const Place& place, const SavedState& saved) {
  for_each_bucket(layout, form, [&](std::size_t held, BucketNumber number) {
    const Buckets& buckets = values_of(saved, held);
    const std::size_t b = form.held[held].place_of(number.buffer), k = static_cast<std::size_t>(number.bucket);
    const Index expected = held_range(layout, form.held[held], number, place).size();
    if (b >= buckets.size() || k >= buckets[b].size() || static_cast<Index>(buckets[b][k].size()) != expected)
      throw std::invalid_argument(fmt::format(
          "gather_checkpoint was given {} that do not fit bucket {} of buffer {}, of which rank {} has {} elements.",
          form.held[held].name, number.bucket, number.buffer, place.rank, expected));
  });
}

// The whole tensors on rank 0, as they fill up.
class Gathered {
 public:
  Gathered(const std::vector<Parameter>& model, const std::vector<Layout>& stages,
           const std::vector<StateForm>& forms) {
    for (const Parameter& parameter : model) {
      of_[parameter.name] = checkpoint_.parameters.size();
      checkpoint_.parameters.push_back(
          {parameter.name, parameter.dims == 1 ? 1 : 2, Matrix(parameter.shape.rows, parameter.shape.cols), {}});
    }
    for (std::size_t s = 0; s < stages.size(); ++s)
      for (const DistMeta& meta : stages[s].parameters()) {
        first_stage_.emplace(meta.name, static_cast<int>(s));
        SavedParameter& parameter = checkpoint_.parameters[of_.at(meta.name)];
        for (std::size_t held = 1; held < forms[s].held.size(); ++held)
          if (forms[s].held[held].covers(meta.buffer_idx))
            parameter.state.emplace(forms[s].held[held].name, Matrix(meta.full_shape.rows, meta.full_shape.cols));
      }
  }

  // Elements of one part, which a rank of a stage has. What an earlier stage has given already must be the same.
  void add(const ParameterPart& part, const Place& from, const HeldForm& form, bool weights, const float* values) {
    SavedParameter& parameter = checkpoint_.parameters[of_.at(part.meta->name)];
    float* whole = (weights ? parameter.weights : parameter.state.at(form.name)).data();
    const int first = first_stage_.at(part.meta->name);
    for_each_range(part, from.tp, [&](Index here, Index there, Index count) {
      const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
      if (first == from.pp)
        std::memcpy(whole + there, values + here, bytes);
      else if (difference_.empty() && std::memcmp(whole + there, values + here, bytes) != 0)
        difference_ = fmt::format(
            "stages {} and {} share {}, but its {} differ; a checkpoint can't hold both, and what they share has to be "
            "stepped alike",
            first, from.pp, in_quotes(part.meta->name), form.name);
    });
  }

  Checkpoint finish() {
    if (!difference_.empty()) throw RunError("no checkpoint was saved: " + difference_);
    return std::move(checkpoint_);
  }

 private:
  Checkpoint checkpoint_;
  std::map<std::string, std::size_t> of_;
  std::map<std::string, int> first_stage_;
  std::string difference_;
};

// Where a rank has the first element of a part.
const float* values_at(const Layout& layout, const StateForm& form, std::size_t held, BucketNumber number,
                       const Place& place, const SavedState& saved, const ParameterPart& part) {
  const HeldForm& of = form.held[held];
  const std::vector<Flat>& buckets = values_of(saved, held)[of.place_of(number.buffer)];
  return buckets[static_cast<std::size_t>(number.bucket)].data() +
         (part.range.begin - held_range(layout, of, number, place).begin);
}

// What each giver sends, [giver]; nothing of rank 0's own. All of them are asked at once, and send side by side.
std::vector<Flat> receive_bucket(Communicator& world, const std::vector<Giver>& givers) {
  std::vector<Flat> pieces(givers.size());
  std::vector<Transfer> transfers;
  for (std::size_t i = 0; i < givers.size(); ++i) {
    if (givers[i].place.rank == kRoot) continue;
    pieces[i].resize(static_cast<std::size_t>(part_elements(givers[i].parts)));
    transfers.push_back(world.irecv(pieces[i].data(), static_cast<Index>(pieces[i].size()), givers[i].place.rank));
  }
  for (Transfer& transfer : transfers) transfer.wait();
  return pieces;
}

// The saved parameter of every name in the layout, after a look at whether it has what `form` says is kept of it.
std::map<std::string, const SavedParameter*> require_state(const Checkpoint& checkpoint, const Layout& layout,
                                                           const StateForm& form) {
  std::map<std::string, const SavedParameter*> all;
  for (const DistMeta& meta : layout.parameters()) {
    const SavedParameter* saved = checkpoint.find(meta.name);
    if (saved == nullptr || Shape{saved->weights.rows(), saved->weights.cols()} != meta.full_shape)
      throw std::invalid_argument("state_of was given a layout with " + in_quotes(meta.name) +
                                  ", which is not in the model, or of another shape.");
    std::set<std::string> kept;
    for (std::size_t i = 1; i < form.held.size(); ++i)
      if (form.held[i].covers(meta.buffer_idx)) kept.insert(form.held[i].name);
    for (const std::string& name : kept)
      if (saved->state.count(name) == 0)
        refuse_checkpoint(
            checkpoint.path,
            fmt::format("it has no {} of {}, which {} keeps", in_quotes(name), in_quotes(meta.name), form.optimizer),
            "resume with the optimizer of each parameter that it was saved with");
    for (const auto& [name, values] : saved->state)
      if (kept.count(name) == 0)
        refuse_checkpoint(checkpoint.path,
                          fmt::format("it has {} of {}, of which {} keeps none", in_quotes(name), in_quotes(meta.name),
                                      form.optimizer),
                          "resume with the optimizer of each parameter that it was saved with");
    all[meta.name] = saved;
  }
  return all;
}

// The rank's part of one thing that it holds: whole buckets or shards, with zeros for padding.
Buckets held_part(const std::map<std::string, const SavedParameter*>& parameters, const Layout& layout,
                  const Place& place, const HeldForm& form, bool weights) {
  Buckets buckets(form.buffer == kEveryBuffer ? layout.buffers.size() : 1);
  for (const BucketNumber& number : buckets_of(layout, form)) {
    const Range held = held_range(layout, form, number, place);
    Flat& values = buckets[form.place_of(number.buffer)].emplace_back(static_cast<std::size_t>(held.size()));
    for (const ParameterPart& part : parts_held(layout, form, number, place)) {
      const SavedParameter& saved = *parameters.at(part.meta->name);
      const float* whole = (weights ? saved.weights : saved.state.at(form.name)).data();
      float* to = values.data() + (part.range.begin - held.begin);
      for_each_range(part, place.tp, [&](Index here, Index there, Index count) {
        std::copy(whole + there, whole + there + count, to + here);
      });
    }
  }
  return buckets;
}

}  // namespace

std::optional<Checkpoint> gather_checkpoint(Communicator& world, const std::vector<Parameter>& model,
                                            const std::vector<Layout>& stages, const Place& place,
                                            const SavedState& saved, const std::map<std::string, std::string>& notes) {
  require_layouts(model, stages);
  const Layout& own_layout = stages.at(static_cast<std::size_t>(place.pp));
  require_sizes(own_layout, StateForm::of(saved), place, saved);
  const ComparedStates compared = compare_states(world, stages, saved);
  const std::vector<StateForm>& forms = compared.forms;

  if (place.rank != kRoot) {
    const StateForm& form = forms[static_cast<std::size_t>(place.pp)];
    for_each_bucket(own_layout, form, [&](std::size_t held, BucketNumber number) {
      const std::vector<ParameterPart> parts = parts_given(own_layout, form.held[held], number, place);
      Flat packed;
      packed.reserve(static_cast<std::size_t>(part_elements(parts)));
      for (const ParameterPart& part : parts) {
        const float* values = values_at(own_layout, form, held, number, place, saved, part);
        packed.insert(packed.end(), values, values + part.range.size());
      }
      if (!packed.empty()) world.send(packed.data(), static_cast<Index>(packed.size()), kRoot);
    });
    return std::nullopt;
  }

  Gathered gathered(model, stages, forms);
  for (std::size_t s = 0; s < stages.size(); ++s)
    for_each_bucket(stages[s], forms[s], [&](std::size_t held, BucketNumber number) {
      const HeldForm& form = forms[s].held[held];
      const auto givers = givers_of(stages[s], static_cast<int>(s), form, number);
      const std::vector<Flat> pieces = receive_bucket(world, givers);
      for (std::size_t i = 0; i < givers.size(); ++i) {
        const bool mine = givers[i].place.rank == kRoot;
        const float* values = pieces[i].data();
        for (const ParameterPart& part : givers[i].parts) {
          if (mine) values = values_at(stages[s], forms[s], held, number, place, saved, part);
          gathered.add(part, givers[i].place, form, held == 0, values);
          values += part.range.size();
        }
      }
    });
  Checkpoint checkpoint = gathered.finish();
  checkpoint.optimizer = saved.optimizer;
  checkpoint.steps = compared.steps;
  checkpoint.notes = notes;
  return checkpoint;
}

Plan gather_checkpoint_plan(const std::vector<Layout>& stages, const std::vector<StateForm>& forms,
                            const Place& place) {
  Plan plan{stages.at(0).grid, place, {}};
  plan_comparison(plan, stages, forms);
  const auto call = [&plan](CollectiveKind kind, Index in, Index out, int peer) {
    plan.operations.push_back(Call{"world", kind, ElementType::float32, in, out, peer});
  };
  std::set<std::pair<std::string, std::string>> tensors;  // that rank 0 has room for
  Index elements = 0;
  for (std::size_t s = 0; s < stages.size(); ++s)
    for (const DistMeta& meta : stages[s].parameters())
      for (std::size_t held = 0; held < forms[s].held.size(); ++held) {
        const bool weights = held == 0;
        if (!forms[s].held[held].covers(meta.buffer_idx)) continue;
        if (tensors.insert({weights ? "" : forms[s].held[held].name, meta.name}).second)
          elements += meta.full_shape.size();
      }
  if (place.rank == kRoot) plan.take(elements, "checkpoint");

  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (place.rank != kRoot && static_cast<int>(s) != place.pp) continue;
    for_each_bucket(stages[s], forms[s], [&](std::size_t held, BucketNumber number) {
      std::vector<std::pair<int, Index>> others;  // and how much comes from them, or goes from me
      for (const Giver& giver : givers_of(stages[s], static_cast<int>(s), forms[s].held[held], number))
        if (place.rank == kRoot ? giver.place.rank != kRoot : giver.place.rank == place.rank)
          others.emplace_back(giver.place.rank, part_elements(giver.parts));
      Index all = 0;
      for (const auto& [rank, count] : others) all += count;
      if (others.empty()) return;
      plan.work(phases::gather_bucket, {1, all});
      plan.take(all, "piece of a bucket");
      if (place.rank == kRoot) {
        for (const auto& [rank, count] : others) call(CollectiveKind::recv, 0, count, rank);
        for (const auto& [rank, count] : others) call(CollectiveKind::wait, 0, 0, rank);
      } else {
        call(CollectiveKind::send, all, 0, kRoot);
      }
      plan.give_back(all, "piece of a bucket");
    });
  }
  return plan;
}

SavedState state_of(const Checkpoint& checkpoint, const std::vector<Parameter>& model, const Layout& layout,
                    const Place& place, Optimizer& optimizer) {
  require_model(checkpoint, model);
  const StateForm form = StateForm::at(layout, place, optimizer);
  if (checkpoint.optimizer != form.optimizer)
    refuse_checkpoint(
        checkpoint.path,
        fmt::format("it is of the optimizer {}, not of {}", in_quotes(checkpoint.optimizer), in_quotes(form.optimizer)),
        "resume with the one that it was saved with");
  const auto parameters = require_state(checkpoint, layout, form);
  SavedState state;
  state.optimizer = form.optimizer;
  state.steps = checkpoint.steps;
  for (std::size_t i = 0; i < form.held.size(); ++i) {
    Buckets part = held_part(parameters, layout, place, form.held[i], i == 0);
    if (i == 0)
      state.weights = std::move(part);
    else
      state.kept.push_back({form.held[i], std::move(part)});
  }
  return state;
}

}  // namespace muonwalk

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
