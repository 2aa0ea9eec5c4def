#include "lessons/lesson_14_memory/memory_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "src/optim/full_step.hpp"
#include "src/optim/master_weights.hpp"
#include "src/optim/parameter_groups.hpp"
#include "src/text/table.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

constexpr int kBarWidth = 40;
constexpr int kMatrixWidth = 16;
constexpr Index kExactInFloat = Index{1} << 24;

// Visits every number with its name; `AnyMemory` is a RankMemory that may be changed, or one that may not.
template <class AnyMemory, class Visit>
void for_each_number(AnyMemory& memory, const std::string& of, const Visit& visit) {
  for (auto& [what, bytes] : memory.kept) visit(fmt::format("{}, kept: {}", of, what), bytes);
  visit(of + ", of hidden matrices alone", memory.kept_for_hidden);
  for (std::size_t i = 0; i < memory.phases.size(); ++i) {
    auto& phase = memory.phases[i];
    const std::string name = fmt::format("{}, phase {:02} ({})", of, i + 1, phase.phase);
    visit(name + ": as it begins", phase.held);
    visit(name + ": most", phase.most);
  }
}

// The phases that get a line: each of a bucket; of a matrix's, which follow each other, the one that holds most.
std::vector<PhaseMemory> charted(const RankMemory& memory) {
  std::vector<PhaseMemory> all;
  for (const PhaseMemory& phase : memory.phases) {
    const bool same_matrix = phase.parameter >= 0 && !all.empty() && all.back().parameter == phase.parameter;
    if (!same_matrix)
      all.push_back(phase);
    else if (phase.most > all.back().most)
      all.back() = phase;
  }
  return all;
}

// "bucket 0.1", in the order in which a step goes through them.
std::vector<std::string> bucket_names(const Layout& layout) {
  std::vector<std::string> names;
  for (const auto& [b, k] : layout.all_buckets()) names.push_back(fmt::format("bucket {}.{}", b, k));
  return names;
}

std::string repeated(const char* cell, Index times) {
  std::string text;
  for (Index i = 0; i < times; ++i) text += cell;
  return text;
}

constexpr Index kMega = 1000000;
// Those whose plans on 64 ranks take a moment together; kimi-k2's take seconds, so it has to be asked for.
const char* const kModels[] = {"gpt2", "llama-7b", "moonlight-16b", "qwen3-30b"};

Layout layout_of(const std::vector<Parameter>& parameters, const Grid& grid, int dp, Ownership ownership) {
  LayoutOptions options;
  options.bucket_capacity = megatron_bucket(dp);
  options.ownership = ownership;
  return plan_layout(parameters, grid, options);
}

// Of these groups of parameters; the hidden matrices are Muon's, or AdamW's like all else.
Plan plan_of(const Layout& layout, const Place& place, bool muon) {
  std::vector<ParameterGroup> groups = usual_groups(muon_settings(Precision::bf16, 1, Products::eigen), {});
  if (!muon) groups[kHiddenMatrices].make = groups[1].make;
  return with_master_weights(GroupedOptimizer(groups, {}).plan(layout, place), layout);
}

RankMemory memory_of(const Layout& layout, const Place& place, bool muon) {
  return planned_memory(plan_of(layout, place, muon), plan_of(layout.of_group(kHiddenMatrices), place, muon));
}

// The DP rank that holds the most while Muon steps.
int fullest(const Layout& layout, const Grid& grid) {
  const Layout matrices = layout.of_group(kHiddenMatrices);
  int rank = 0;
  Index most = -1;
  for (int dp = 0; dp < grid.dp(); ++dp) {
    const Place place = grid.place(dp * grid.tp());
    const Index bytes = peak_bytes(plan_of(matrices, place, true));
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

Index RankMemory::held() const {
  Index bytes = 0;
  for (const auto& [what, of_what] : kept) bytes += of_what;
  return bytes;
}

Index RankMemory::held(std::initializer_list<const char*> kinds) const {
  Index bytes = 0;
  for (const char* kind : kinds)
    if (const auto found = kept.find(kind); found != kept.end()) bytes += found->second;
  return bytes;
}

Index RankMemory::most() const {
  Index bytes = held();
  for (const PhaseMemory& phase : phases) bytes = std::max(bytes, phase.most);
  return bytes;
}

RankMemory planned_memory(const Plan& plan, const Plan& hidden) {
  RankMemory memory;
  for (const Memory& each : held_between_steps(plan)) memory.kept[std::string(each.what)] += each.bytes();
  for (const Memory& each : held_between_steps(hidden)) memory.kept_for_hidden += each.bytes();
  memory.phases = phase_memory(plan);
  return memory;
}

NamedNumbers numbers_of(const RankMemory& memory, const std::string& of) {
  NamedNumbers numbers;
  for_each_number(memory, of, [&numbers](const std::string& name, Index bytes) { numbers[name] = bytes; });
  return numbers;
}

RankMemory with_numbers(RankMemory memory, const std::string& of, const NamedNumbers& numbers) {
  for_each_number(memory, of, [&numbers](const std::string& name, Index& bytes) {
    const auto found = numbers.find(name);
    bytes = found == numbers.end() ? -1 : found->second;
  });
  // What was counted and not planned is held all the same.
  const std::string kept = of + ", kept: ";
  for (const auto& [name, bytes] : numbers)
    if (name.rfind(kept, 0) == 0) memory.kept[name.substr(kept.size())] = bytes;
  return memory;
}

std::vector<NamedMatrix> as_matrices(const std::map<std::string, RankMemory>& counted) {
  std::vector<NamedMatrix> all;
  for (const auto& [way, memory] : counted)
    for (const auto& [name, bytes] : numbers_of(memory, way)) {
      if (bytes > kExactInFloat)
        throw std::logic_error(fmt::format("{} bytes are more than a float32 counts exactly", bytes));
      all.push_back({name, Matrix(1, 1, {static_cast<float>(bytes)}), 0, 0});
    }
  return all;
}

ParameterCount parameter_count(const Layout& layout) {
  ParameterCount count;
  for (const Buffer& buffer : layout.buffers)
    for (const DistMeta& meta : buffer.parameters) {
      count.all += meta.shape.size();
      if (buffer.group == 0) count.hidden += meta.shape.size();
    }
  return count;
}

std::string memory_table(const std::string& title, const std::vector<MemoryPair>& pairs, const ParameterCount& count,
                         Index unit) {
  using Bytes = Index (*)(const RankMemory&);
  static const std::pair<const char*, Bytes> kLines[] = {
      {"weights, bfloat16", [](const RankMemory& m) { return m.held({"weights"}); }},
      {"gradients, float32", [](const RankMemory& m) { return m.held({"gradients"}); }},
      {"master weights, float32", [](const RankMemory& m) { return m.held({"master weights"}); }},
      {"momentum, first moments",
       [](const RankMemory& m) {
         return m.held({"momentum", "first moments"});
       }},
      {"second moments", [](const RankMemory& m) { return m.held({"second moments"}); }},
      {"between two steps", [](const RankMemory& m) { return m.held(); }},
      {"for a moment", [](const RankMemory& m) { return m.most() - m.held(); }},
      {"at most", [](const RankMemory& m) { return m.most(); }}};
  Table table({{title}}, 2);
  for (const MemoryPair& pair : pairs) {
    const std::string prefix = pair.name.empty() ? "" : pair.name + " ";
    for (const std::string& heading : {prefix + "AdamW", prefix + "Muon", std::string("ratio")})
      table.column({heading, Side::right});
  }
  for (const auto& [name, bytes] : kLines) {
    std::vector<Cell> cells = {name};
    for (const MemoryPair& pair : pairs) {
      const Index adamw = bytes(pair.adamw), muon = bytes(pair.muon);
      for (const Index each : {adamw, muon}) cells.push_back(number_text((each + unit / 2) / unit));
      cells.push_back(ratio_text(double(muon), double(adamw)));
    }
    table.row(cells);
  }
  std::vector<Cell> all = {"per parameter, between steps"}, hidden = {"per parameter of hidden matrices"};
  for (const MemoryPair& pair : pairs) {
    for (const RankMemory* memory : {&pair.adamw, &pair.muon}) {
      all.push_back(ratio_text(double(memory->held()), double(count.all)));
      hidden.push_back(ratio_text(double(memory->kept_for_hidden), double(count.hidden)));
    }
    all.push_back("");
    hidden.push_back("");
  }
  table.row(all);
  table.row(hidden);
  return table.text();
}

std::string phase_chart(const std::string& title, const RankMemory& memory, const Layout& layout) {
  const Index held = memory.held(), most = std::max<Index>(memory.most(), 1);
  const std::vector<std::string> buckets = bucket_names(layout);
  const std::map<std::string, std::string> names = layout.short_names(kMatrixWidth);
  std::vector<std::vector<PhaseMemory>> of_bucket;
  Index before = held;
  for (const PhaseMemory& phase : charted(memory)) {
    if (of_bucket.empty() || phase.phase == phases::reduce_gradients) of_bucket.emplace_back();
    if (phase.parameter < 0 && phase.most == before) continue;
    before = phase.most;
    of_bucket.back().push_back(phase);
  }
  Table table({{title}, {""}, {"bytes", number_text}}, 2);
  std::vector<Index> bytes = {0};
  std::vector<std::string> repeats;  // buckets that are as the one before
  for (std::size_t b = 0; b < of_bucket.size(); ++b) {
    const auto same = [](const PhaseMemory& x, const PhaseMemory& y) { return x.phase == y.phase && x.most == y.most; };
    if (b > 0 && !of_bucket[b].empty() && of_bucket[b].size() == of_bucket[b - 1].size() &&
        std::equal(of_bucket[b].begin(), of_bucket[b].end(), of_bucket[b - 1].begin(), same)) {
      repeats.push_back(buckets.at(b));
      continue;
    }
    for (const PhaseMemory& phase : of_bucket[b]) {
      table.row({phase.phase, phase.parameter >= 0 ? names.at(layout.meta(phase.parameter).name) : buckets.at(b),
                 phase.most});
      bytes.push_back(phase.most);
    }
  }
  const std::vector<std::string> lines = table.lines();
  std::string text = lines[0];
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const Index room = std::min<Index>(kBarWidth, output_columns() - 3 - text_width(lines[i]));
    const Index kept_cells = held * room / most;
    const Index cells = (bytes[i] * room + most - 1) / most;  // something is seen of all that is there
    text += "\n" + lines[i] + "   " + repeated("█", kept_cells) + repeated("▒", cells - kept_cells);
  }
  if (!repeats.empty()) text += fmt::format("\n  as the bucket before: {}", fmt::join(repeats, ", "));
  return text;
}

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
  std::vector<Parameter> parameters;
  for (ModelTensor& tensor : tensors) parameters.push_back(std::move(tensor.parameter));
  parameters = route(std::move(parameters), usual_groups({}, {}));
  const Layout sharded = layout_of(parameters, grid, grid.dp(), Ownership::buckets);
  const Layout alone = layout_of(parameters, Grid().tp(grid.tp()), grid.dp(), Ownership::matrices);
  memory.of_rank = parameter_count(sharded);
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
