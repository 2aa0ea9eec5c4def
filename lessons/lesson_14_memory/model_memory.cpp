#include "lessons/lesson_14_memory/model_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "src/optim/adamw_step.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/master_weights.hpp"
#include "src/text/table.hpp"

namespace muonwalk::sim {
namespace {

constexpr Index kMega = 1000000;
// Those whose plans on 64 ranks take a moment together; kimi-k2's take seconds, so it has to be asked for.
const char* const kModels[] = {"gpt2", "llama-7b", "moonlight-16b", "qwen3-30b"};

// The groups that get a buffer each.
enum SteppedGroup { kMatrices, kOuterLayers, kVectors, kGroups };

SteppedGroup group_of(TensorKind kind) {
  if (kind == TensorKind::vector) return kVectors;
  return kind == TensorKind::hidden || kind == TensorKind::expert ? kMatrices : kOuterLayers;
}

std::vector<Parameter> grouped_parameters(std::vector<ModelTensor> tensors) {
  std::vector<Parameter> parameters;
  for (ModelTensor& tensor : tensors) {
    tensor.parameter.group = group_of(tensor.kind);
    parameters.push_back(std::move(tensor.parameter));
  }
  return parameters;
}

// A layout for each group. Planning goes rank by rank, and a part of a layout is not made anew for each.
std::vector<Layout> layouts_of(const std::vector<Parameter>& parameters, const Grid& grid, int dp,
                               Ownership ownership) {
  LayoutOptions options;
  options.bucket_capacity = std::max(40 * kMega, dp * kMega);
  options.ownership = ownership;
  const Layout all = plan_layout(parameters, grid, options);
  std::vector<Layout> of_groups;
  for (int group = 0; group < kGroups; ++group) of_groups.push_back(all.of_group(group));
  return of_groups;
}

MuonSettings bf16_settings() { return muon_settings(Precision::bf16, 1, Products::eigen); }

Plan plan_of(const Layout& layout, const Place& place, bool muon) {
  const Plan plan = muon ? muon_plan(layout, place, bf16_settings()) : Zero1AdamW(AdamWSettings()).plan(layout, place);
  return with_master_weights(plan, layout);
}

// The groups are stepped one after the other, and each beside what is kept for all.
RankMemory memory_of(const std::vector<Layout>& layouts, const Place& place, bool muon) {
  std::vector<RankMemory> parts;
  RankMemory all;
  for (int group = 0; group < kGroups; ++group) {
    const Plan plan = plan_of(layouts[group], place, muon && group == kMatrices);
    parts.push_back(planned_memory(plan, plan));
    for (const auto& [what, bytes] : parts.back().kept) all.kept[what] += bytes;
  }
  all.kept_for_hidden = parts[kMatrices].held();
  for (RankMemory& part : parts) {
    const Index beside = all.held() - part.held();
    for (PhaseMemory& phase : part.phases) {
      phase.held += beside;
      phase.most += beside;
      all.phases.push_back(std::move(phase));
    }
  }
  return all;
}

// The DP rank that holds the most while Muon steps.
int fullest(const std::vector<Layout>& layouts, const Grid& grid) {
  int rank = 0;
  Index most = -1;
  for (int dp = 0; dp < grid.dp(); ++dp) {
    const Place place = grid.place(dp * grid.tp());
    const Index bytes = peak_bytes(plan_of(layouts[kMatrices], place, true));
    if (bytes > most) most = bytes, rank = dp;
  }
  return rank;
}

std::string share_text(Index part, Index of) {
  return percent_text(static_cast<double>(part) / static_cast<double>(of));
}

std::string over(Index part, Index of) { return ratio_text(double(part), double(of)); }

Index state_of(const RankMemory& memory) { return memory.held({"momentum", "first moments", "second moments"}); }

}  // namespace

ModelShares shares_of(const std::vector<ModelTensor>& tensors) {
  ModelShares shares;
  for (const ModelTensor& tensor : tensors) {
    const Index size = tensor.parameter.shape.size();
    shares.all += size;
    Index& part = tensor.kind == TensorKind::hidden   ? shares.hidden
                  : tensor.kind == TensorKind::expert ? shares.experts
                  : tensor.kind == TensorKind::vector ? shares.vectors
                                                      : shares.outer;
    part += size;
  }
  return shares;
}

ModelMemory model_memory(const std::string& model, const Grid& grid) {
  std::vector<ModelTensor> tensors = model_tensors(model);
  ModelMemory memory;
  memory.shares = shares_of(tensors);
  const std::vector<Parameter> parameters = grouped_parameters(std::move(tensors));
  const std::vector<Layout> sharded = layouts_of(parameters, grid, grid.dp(), Ownership::buckets);
  const std::vector<Layout> alone = layouts_of(parameters, Grid().tp(grid.tp()), grid.dp(), Ownership::matrices);
  for (const Layout& layout : sharded) {
    const ParameterCount count = parameter_count(layout);
    memory.of_rank.all += count.all;
    memory.of_rank.hidden += count.hidden;
  }
  memory.place = grid.place(fullest(sharded, grid) * grid.tp());
  memory.replicated = {"", memory_of(alone, Place(), false), memory_of(alone, Place(), true)};
  memory.sharded = {"ZeRO-1", memory_of(sharded, memory.place, false), memory_of(sharded, memory.place, true)};
  return memory;
}

std::string model_text(const std::string& model, const Grid& grid) {
  const ModelMemory memory = model_memory(model, grid);
  const ModelShares& shares = memory.shares;
  Table table({{fmt::format("{}, planned for {}", model, grid.text())},
               {"parameters", number_text},
               {"share", Side::right},
               {"stepped by", Side::right}},
              2);
  const auto add = [&](const char* what, Index part, const char* by) {
    if (part > 0) table.row({what, part, share_text(part, shares.all), by});
  };
  add("experts", shares.experts, "Muon");
  add("other hidden matrices", shares.hidden, "Muon");
  add("embeddings and output", shares.outer, "AdamW");
  add("gains and biases", shares.vectors, "AdamW");
  add("all", shares.all, "");
  return table.text() + "\n\n" +
         memory_table(fmt::format("MB that rank {} holds", memory.place.rank), {memory.replicated, memory.sharded},
                      memory.of_rank, kMega);
}

std::string models_table(const Grid& grid) {
  Table table({{fmt::format("Muon over AdamW, ZeRO-1, {}", grid.text())}, {"million", number_text}}, 2);
  for (const char* heading : {"by Muon", "in experts", "state", "between steps", "at most"})
    table.column({heading, Side::right});
  for (const char* model : kModels) {
    const ModelMemory memory = model_memory(model, grid);
    const ModelShares& shares = memory.shares;
    const RankMemory &adamw = memory.sharded.adamw, &muon = memory.sharded.muon;
    table.row({model, (shares.all + kMega / 2) / kMega, share_text(shares.muons(), shares.all),
               share_text(shares.experts, shares.all), over(state_of(muon), state_of(adamw)),
               over(muon.held(), adamw.held()), over(muon.most(), adamw.most())});
  }
  // github.com/NVIDIA/Megatron-LM, pull request 1428, a comment of 2025-02-26 about a mixture of experts: 1,351,721,016
  // parameters in all, and 768 × 163,840 × 2 of them in embedding and output. How the rest is made up is not said there
  // to the last one (of its experts only those that a token leaves out); gains are counted as Muon's here.
  constexpr Index kAll = 1351721016, kOuter = Index{768} * 163840 * 2;
  table.row({"by hand, Megatron-LM request 1428", (kAll + kMega / 2) / kMega, share_text(kAll - kOuter, kAll), "–",
             over(kAll + kOuter, 2 * kAll), "–", "–"});
  return table.text();
}

}  // namespace muonwalk::sim
