#include "lessons/lesson_20_pretrain/state_form.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "src/errors.hpp"
#include "src/text/names.hpp"

namespace muonwalk {
namespace {

// What every rank sends first: how long its text is, and its steps, so that the text is as long in every step.
struct FormHeader {
  std::int64_t text_bytes = 0;
  std::int64_t steps = 0;
};

constexpr Index kHeaderBytes = sizeof(FormHeader);

// A line for the optimizer, and one for each thing that is held: "1 shards momentum".
std::string form_text(const StateForm& form) {
  std::string text = form.optimizer + "\n";
  for (const HeldForm& held : form.held)
    text += fmt::format("{} {} {}\n", held.buffer, held.whole ? "whole" : "shards", held.name);
  return text;
}

StateForm parsed_form(const std::string& text) {
  std::istringstream lines(text);
  StateForm form;
  std::getline(lines, form.optimizer);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    HeldForm held;
    std::string spread;
    words >> held.buffer >> spread >> std::ws;
    std::getline(words, held.name);
    held.whole = spread == "whole";
    form.held.push_back(held);
  }
  return form;
}

[[noreturn]] void refuse_to_save(const std::string& why) { throw RunError("no checkpoint was saved: " + why); }

// The first parameter that something held is about; a stage without parameters has none.
std::string first_parameter(const Layout& layout, const HeldForm& held) {
  for (const DistMeta& meta : layout.parameters())
    if (held.covers(meta.buffer_idx)) return in_quotes(meta.name);
  return "any parameter";
}

// Refuses what `b` holds and `a` does not.
void require_kept(const Layout& layout, int a, const StateForm& form_a, int b, const StateForm& form_b) {
  for (const HeldForm& held : form_b.held)
    if (std::find(form_a.held.begin(), form_a.held.end(), held) == form_a.held.end())
      refuse_to_save(
          fmt::format("rank {} keeps no {} of {} as rank {} does; what is kept has to be the same on all ranks that "
                      "share parameters",
                      a, in_quotes(held.name), first_parameter(layout, held), b));
}

// What is kept of each parameter in a stage, by name.
std::map<std::string, std::set<std::string>> kept_of(const Layout& layout, const StateForm& form) {
  std::map<std::string, std::set<std::string>> kept;
  for (const DistMeta& meta : layout.parameters()) {
    std::set<std::string>& names = kept[meta.name];
    for (std::size_t i = 1; i < form.held.size(); ++i)
      if (form.held[i].covers(meta.buffer_idx) && !names.insert(form.held[i].name).second)
        refuse_to_save(fmt::format("{} keeps two things named {} of {}; they need different names", form.optimizer,
                                   in_quotes(form.held[i].name), in_quotes(meta.name)));
  }
  return kept;
}

std::string kept_text(const std::set<std::string>& kept) {
  return kept.empty() ? "nothing" : visible_names({kept.begin(), kept.end()});
}

// Stages that share a parameter have to step it with the same optimizer.
void require_shared_alike(const std::vector<Layout>& stages, const std::vector<StateForm>& forms) {
  std::map<std::string, std::pair<std::size_t, std::set<std::string>>> first;  // by parameter
  for (std::size_t s = 0; s < stages.size(); ++s)
    for (const auto& [name, kept] : kept_of(stages[s], forms[s])) {
      const auto [found, is_new] = first.emplace(name, std::make_pair(s, kept));
      if (!is_new && found->second.second != kept)
        refuse_to_save(fmt::format(
            "stages {} and {} share {}, but one keeps {} of it and the other {}; one kind of optimizer has to step it",
            found->second.first, s, in_quotes(name), kept_text(found->second.second), kept_text(kept)));
    }
}

}  // namespace

StateForm StateForm::of(const SavedState& saved) {
  StateForm form{saved.optimizer, {{"weights", /*whole=*/true}}};
  form.held.insert(form.held.end(), saved.kept.begin(), saved.kept.end());
  return form;
}

StateForm StateForm::at(const Layout& layout, const Place& place, Optimizer& optimizer) {
  optimizer.start(layout, place, zero_buckets(layout));
  return of(optimizer.save());
}

const Buckets& values_of(const SavedState& saved, std::size_t held) {
  return held == 0 ? saved.weights : saved.kept.at(held - 1).buckets;
}

std::vector<BucketNumber> buckets_of(const Layout& layout, const HeldForm& form) {
  std::vector<BucketNumber> all = layout.all_buckets();
  all.erase(std::remove_if(all.begin(), all.end(), [&](BucketNumber each) { return !form.covers(each.buffer); }),
            all.end());
  return all;
}

Range held_range(const Layout& layout, const HeldForm& form, BucketNumber number, const Place& place) {
  return form.whole ? layout.bucket(number).range : layout.dp_slice(number.buffer, number.bucket, place.dp);
}

std::vector<ParameterPart> parts_held(const Layout& layout, const HeldForm& form, BucketNumber number,
                                      const Place& place) {
  const Buffer& buffer = layout.buffers[static_cast<std::size_t>(number.buffer)];
  const Range held = held_range(layout, form, number, place);
  std::vector<ParameterPart> parts;
  for (const int index : buffer.buckets[static_cast<std::size_t>(number.bucket)].parameters) {
    const DistMeta& meta = buffer.parameters[static_cast<std::size_t>(index)];
    const Range mine = intersection(meta.global_range, held);
    if (!mine.empty()) parts.push_back({&meta, mine});
  }
  return parts;
}

std::vector<ParameterPart> parts_given(const Layout& layout, const HeldForm& form, BucketNumber number,
                                       const Place& place) {
  if (form.whole && place.dp > 0) return {};
  std::vector<ParameterPart> parts = parts_held(layout, form, number, place);
  if (place.tp == 0) return parts;
  const auto replicated = [](const ParameterPart& part) { return part.meta->tp_split_dim == SplitDim::none; };
  parts.erase(std::remove_if(parts.begin(), parts.end(), replicated), parts.end());
  return parts;
}

Index part_elements(const std::vector<ParameterPart>& parts) {
  Index elements = 0;
  for (const ParameterPart& part : parts) elements += part.range.size();
  return elements;
}

ComparedStates compare_states(Communicator& world, const std::vector<Layout>& stages, const SavedState& saved) {
  const std::string own = form_text(StateForm::of(saved));
  const FormHeader own_header{static_cast<std::int64_t>(own.size()), saved.steps};
  const std::size_t ranks = static_cast<std::size_t>(world.size());
  std::vector<FormHeader> headers(ranks);
  world.all_gather(reinterpret_cast<const std::byte*>(&own_header), kHeaderBytes,
                   reinterpret_cast<std::byte*>(headers.data()));
  std::vector<Index> bytes;
  Index all = 0;
  for (const FormHeader& header : headers) {
    bytes.push_back(header.text_bytes);
    all += header.text_bytes;
  }
  std::string texts(static_cast<std::size_t>(all), '\0');
  world.all_gather_v(reinterpret_cast<const std::byte*>(own.data()), bytes, reinterpret_cast<std::byte*>(texts.data()));

  ComparedStates compared;
  std::size_t at = 0;
  int first_of_stage = 0, counts_steps = -1;  // the first rank that does; one without parameters has no steps to count
  for (int rank = 0; rank < world.size(); ++rank) {
    const FormHeader& header = headers[static_cast<std::size_t>(rank)];
    const StateForm form = parsed_form(texts.substr(at, static_cast<std::size_t>(header.text_bytes)));
    at += static_cast<std::size_t>(header.text_bytes);
    const int stage = stages[0].grid.place(rank).pp;
    const Layout& layout = stages[static_cast<std::size_t>(stage)];
    if (static_cast<int>(compared.forms.size()) == stage) {
      compared.forms.push_back(form);
      first_of_stage = rank;
    }
    if (counts_steps < 0 && !layout.buffers.empty()) {
      counts_steps = rank;
      compared.steps = static_cast<int>(header.steps);
    }
    if (header.steps != compared.steps && !layout.buffers.empty())
      refuse_to_save(
          fmt::format("after {} steps of rank {}, rank {} has taken {}; save when all ranks have ended the "
                      "same one",
                      compared.steps, counts_steps, rank, header.steps));
    if (form.optimizer != compared.forms[0].optimizer)
      refuse_to_save(fmt::format("rank {} has the optimizer {} and rank 0 {}; all ranks have to have the same", rank,
                                 in_quotes(form.optimizer), in_quotes(compared.forms[0].optimizer)));
    require_kept(layout, rank, form, first_of_stage, compared.forms.back());
    require_kept(layout, first_of_stage, compared.forms.back(), rank, form);
  }
  require_shared_alike(stages, compared.forms);
  return compared;
}

void plan_comparison(Plan& plan, const std::vector<Layout>& stages, const std::vector<StateForm>& forms) {
  const Index own = static_cast<Index>(form_text(forms.at(static_cast<std::size_t>(plan.place.pp))).size());
  Index all = 0;
  for (int rank = 0; rank < plan.grid.size(); ++rank)
    all += static_cast<Index>(form_text(forms.at(static_cast<std::size_t>(plan.grid.place(rank).pp))).size());
  plan.work(phases::compare_states, {static_cast<Index>(stages.size()), 1});
  plan.call("world", CollectiveKind::all_gather, ElementType::bytes, kHeaderBytes, kHeaderBytes * plan.grid.size());
  plan.call("world", CollectiveKind::all_gather, ElementType::bytes, own, all);
}

}  // namespace muonwalk
