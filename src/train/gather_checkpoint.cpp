#include "src/train/gather_checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <stdexcept>
#include <utility>

#include "src/errors.hpp"
#include "src/text/names.hpp"
#include "src/train/state_comparison.hpp"

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
    for (const Buffer& buffer : layout.buffers)
      for (const DistMeta& meta : buffer.parameters) {
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
      for (std::size_t b = 0; b < stages[s].buffers.size(); ++b)
        for (const DistMeta& meta : stages[s].buffers[b].parameters) {
          first_stage_.emplace(meta.name, static_cast<int>(s));
          SavedParameter& parameter = checkpoint_.parameters[of_.at(meta.name)];
          for (std::size_t held = 1; held < forms[s].held.size(); ++held)
            if (forms[s].held[held].covers(static_cast<int>(b)))
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

// What a rank has of a bucket, and where its first element lies in the buffer.
struct OwnBucket {
  const Flat& values;
  Index first;
};

OwnBucket own_bucket(const Layout& layout, const StateForm& form, std::size_t held, BucketNumber number,
                     const Place& place, const SavedState& saved) {
  return {values_of(saved, held)[form.held[held].place_of(number.buffer)][static_cast<std::size_t>(number.bucket)],
          held_range(layout, form.held[held], number, place).begin};
}

void send_bucket(Communicator& world, const std::vector<ParameterPart>& parts, const OwnBucket& own) {
  Flat packed;
  packed.reserve(static_cast<std::size_t>(part_elements(parts)));
  for (const ParameterPart& part : parts) {
    const auto first = own.values.begin() + (part.range.begin - own.first);
    packed.insert(packed.end(), first, first + part.range.size());
  }
  world.send(packed.data(), static_cast<Index>(packed.size()), kRoot);
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
      if (!parts.empty()) send_bucket(world, parts, own_bucket(own_layout, form, held, number, place, saved));
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
          if (mine) {
            const OwnBucket own = own_bucket(stages[s], forms[s], held, number, place, saved);
            values = own.values.data() + (part.range.begin - own.first);
          }
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
    for (std::size_t b = 0; b < stages[s].buffers.size(); ++b)
      for (const DistMeta& meta : stages[s].buffers[b].parameters)
        for (std::size_t held = 0; held < forms[s].held.size(); ++held) {
          const bool weights = held == 0;
          if (!forms[s].held[held].covers(static_cast<int>(b))) continue;
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

}  // namespace muonwalk
