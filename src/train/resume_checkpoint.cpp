#include "src/train/resume_checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include "src/text/names.hpp"
#include "src/train/checkpoint_pieces.hpp"

namespace muonwalk {
namespace {

// The saved parameter of every name in the layout, after a look at whether it has what `form` says is kept of it.
std::map<std::string, const SavedParameter*> require_state(const Checkpoint& checkpoint, const Layout& layout,
                                                           const StateForm& form) {
  std::map<std::string, const SavedParameter*> all;
  for (std::size_t b = 0; b < layout.buffers.size(); ++b)
    for (const DistMeta& meta : layout.buffers[b].parameters) {
      const SavedParameter* saved = checkpoint.find(meta.name);
      if (saved == nullptr || Shape{saved->weights.rows(), saved->weights.cols()} != meta.full_shape)
        throw std::invalid_argument("state_of was given a layout with " + in_quotes(meta.name) +
                                    ", which is not in the model, or of another shape.");
      std::set<std::string> kept;
      for (std::size_t i = 1; i < form.held.size(); ++i)
        if (form.held[i].covers(static_cast<int>(b))) kept.insert(form.held[i].name);
      for (const std::string& name : kept)
        if (saved->state.count(name) == 0)
          refuse_checkpoint(
              checkpoint.path,
              fmt::format("it has no {} of {}, which {} keeps", in_quotes(name), in_quotes(meta.name), form.optimizer),
              "resume with the optimizer of each parameter that it was saved with");
      for (const auto& [name, values] : saved->state)
        if (kept.count(name) == 0)
          refuse_checkpoint(checkpoint.path,
                            fmt::format("it has {} of {}, of which {} keeps none", in_quotes(name),
                                        in_quotes(meta.name), form.optimizer),
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
      state.kept.push_back({form.held[i].name, std::move(part), form.held[i].whole, form.held[i].buffer});
  }
  return state;
}

}  // namespace muonwalk
