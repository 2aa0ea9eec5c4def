#include "lessons/lesson_15_sharding_layouts/layout_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "src/errors.hpp"
#include "src/numerics/newton_schulz.hpp"
#include "src/text/names.hpp"
#include "src/text/table.hpp"
#include "src/text/text.hpp"
#include "src/train/published_models.hpp"

namespace muonwalk::sim {
namespace {

constexpr int kOwnersNameWidth = 18;  // of a matrix, in the table of owners

double work_of(const DistMeta& meta) { return newton_schulz_flops(meta.full_shape.rows, meta.full_shape.cols); }

// All matrices in the order of their numbers.
std::vector<const DistMeta*> in_order(const Layout& layout) {
  std::vector<const DistMeta*> metas;
  for (const DistMeta& meta : layout.parameters()) metas.push_back(&meta);
  std::sort(metas.begin(), metas.end(), [](auto* a, auto* b) { return a->parameter < b->parameter; });
  return metas;
}

double largest_work(const Layout& layout) {
  double largest = 0;
  for (const DistMeta& meta : layout.parameters()) largest = std::max(largest, work_of(meta));
  return largest;
}

void require_some(const std::vector<NamedLayout>& layouts) {
  if (layouts.empty()) throw std::invalid_argument("a table of layouts needs at least one of them");
}

// A unit, and how many of what it counts it stands for.
using Unit = std::pair<const char*, double>;

Unit unit_of(double flops) {
  if (flops >= 1e15) return {"PFLOP", 1e15};
  if (flops >= 1e12) return {"TFLOP", 1e12};
  if (flops >= 1e9) return {"GFLOP", 1e9};
  if (flops >= 1e6) return {"MFLOP", 1e6};
  return {"kFLOP", 1e3};
}

// Exact as long as that can be read.
std::string size_text(double bytes) {
  if (bytes >= 1e9) return fmt::format("{:.1f} GB", bytes / 1e9);
  if (bytes >= 1e6) return fmt::format("{:.1f} MB", bytes / 1e6);
  return bytes_text(static_cast<long long>(bytes));
}

std::string elements_text(double elements) {
  if (elements >= 1e9) return fmt::format("{:.1f} billion elements", elements / 1e9);
  return number_text(static_cast<long long>(elements)) + " elements";
}

}  // namespace

Layout lay_out(const std::vector<Parameter>& parameters, const Grid& grid, const OwnershipPolicy& way, Index bucket) {
  constexpr Index kMegatronAlignment = 64;
  return plan_layout(parameters, grid,
                     {bucket, kMegatronAlignment, 1, way.ownership,
                      way.owners == nullptr ? std::vector<int>() : way.owners(parameters, grid)});
}

std::vector<NamedLayout> layouts_of(const std::vector<Parameter>& parameters, const Grid& grid,
                                    const std::vector<OwnershipPolicy>& ways, Index bucket) {
  std::vector<NamedLayout> layouts;
  for (const OwnershipPolicy& way : ways) layouts.emplace_back(way.name, lay_out(parameters, grid, way, bucket));
  return layouts;
}

std::string owners_table(const std::vector<NamedLayout>& layouts) {
  require_some(layouts);
  std::vector<std::vector<const DistMeta*>> metas;
  for (const auto& [name, layout] : layouts) metas.push_back(in_order(layout));
  double largest = 0;
  for (const DistMeta* meta : metas[0]) largest = std::max(largest, work_of(*meta));
  const auto [unit, flops] = unit_of(largest);

  Table table({{"matrix"}, {"shape"}, {"TP cuts"}, {"elements", number_text}, {unit, Digits{0}}});
  for (const auto& [name, layout] : layouts) table.column({name, Side::right});
  for (std::size_t p = 0; p < metas[0].size(); ++p) {
    const DistMeta& meta = *metas[0][p];
    std::vector<Cell> row = {visible_name(meta.name, kOwnersNameWidth),
                             shape_text(meta.full_shape.rows, meta.full_shape.cols), split_name(meta.tp_split_dim),
                             meta.shape.size(), work_of(meta) / flops};
    for (std::size_t l = 0; l < layouts.size(); ++l) {
      const std::vector<int> owners = layouts[l].second.owners(*metas[l][p]);
      row.emplace_back(range_text({owners.front(), owners.back() + 1}));
    }
    table.row(row);
  }
  return table.text();
}

std::string sharding_table(const std::vector<NamedLayout>& layouts, Precision gathered,
                           const std::vector<NamedLayout>& experts) {
  require_some(layouts);
  const Layout& first = layouts[0].second;
  const int dp = first.grid.dp();
  const double element_bytes = gathered == Precision::bf16 ? 2 : 4;
  Table table({{""}, {"cut", Side::right}, {"gathers", Side::right}});
  for (const char* heading : {"× the work", "most elements", "most work", "slowest"})
    table.column({heading, Digits{2}});
  Sharding last;
  const auto add = [&](const std::string& name, int cut, double elements, const std::vector<double>& factors) {
    std::vector<Cell> row = {name, fmt::format("{} of {}", number_text(cut), number_text(last.matrices)),
                             size_text(elements * element_bytes)};
    for (const double factor : factors) row.push_back(factor > 0 ? Cell(factor) : Cell(std::nullopt));
    table.row(row);
  };

  for (std::size_t i = 0; i < layouts.size(); ++i) {
    last = sharding_of(layouts[i].second);
    if (!experts.empty()) last = with_experts(std::move(last), sharding_of(experts.at(i).second));
    const Index gathers = *std::max_element(last.gathered.begin(), last.gathered.end());
    add(layouts[i].first, last.cut, static_cast<double>(gathers),
        {last.redundancy(1), most_over_mean(last.elements), most_over_mean(last.flops), last.slowdown()});
  }
  // The bounds. Where whole matrices are dealt out by work, nothing bounds the elements of a rank.
  double all = 0, gathered_by_all = 0, done_by_all = 0, largest = 0;
  int cut_by_all = 0;
  for (const Index elements : last.elements) all += static_cast<double>(elements);
  for (const Layout* layout : {&first, experts.empty() ? nullptr : &experts[0].second}) {
    if (layout == nullptr) continue;
    const Sharding part = sharding_of(*layout);
    const int ranks = layout->grid.dp();  // what they hold, all of them would cut
    for (const Index elements : part.elements) gathered_by_all += static_cast<double>(elements) / ranks * (ranks - 1);
    if (ranks > 1) cut_by_all += part.matrices * (dp / ranks);
    done_by_all += part.flops_once * dp;
    largest = std::max(largest, largest_work(*layout));
  }
  const double done = done_by_all / std::max(last.flops_once, 1.0);
  const double least = last.flops_once == 0 ? 1 : std::max(1.0, largest * dp / last.flops_once);
  add("all cut by all", cut_by_all, gathered_by_all, {done, 1, 1, done});
  add("whole, at best", 0, 0, {1, 0, least, least});

  const auto [unit, flops] = unit_of(last.flops_once);
  const std::string ep = experts.empty() ? "" : fmt::format(", ep {}", dp / experts[0].second.grid.dp());
  return fmt::format("{} {} on {}{}: {}{}, {:.1f} {} of Newton–Schulz\n", number_text(last.matrices),
                     last.matrices == 1 ? "matrix" : "matrices", first.grid.text(), ep, elements_text(all),
                     experts.empty() ? " in TP slices" : "", last.flops_once / flops, unit) +
         table.text();
}

std::vector<Parameter> tp_slices(const std::vector<Parameter>& parameters, int tp) {
  std::vector<Parameter> slices = parameters;
  for (Parameter& each : slices) {
    each.shape = tp_shape(each, tp);
    each.tp_split_dim = SplitDim::none;
  }
  return slices;
}

std::vector<Parameter> with_whole_experts(const std::string& model) {
  std::vector<Parameter> parameters;
  for (ModelTensor& tensor : model_tensors(model)) {
    if (tensor.kind == TensorKind::expert) tensor.parameter.tp_split_dim = SplitDim::none;
    if (tensor.kind == TensorKind::hidden || tensor.kind == TensorKind::expert)
      parameters.push_back(std::move(tensor.parameter));
  }
  return parameters;
}

std::pair<std::vector<Parameter>, std::vector<Parameter>> with_dealt_experts(const std::string& model, int ep, int dp) {
  const Index count = model_configuration(model).experts.count;
  if (count == 0)
    throw UsageError(fmt::format("--ep {} deals out experts, and {} has none; try --model qwen3-30b", ep, model));
  if (ep < 1 || count % ep != 0)
    throw UsageError(
        fmt::format("--ep {} does not divide the {} experts of a layer of {}; try --ep 8", ep, count, model));
  if (dp % ep != 0)
    throw UsageError(fmt::format("--ep {} does not divide --dp {}, in whose ranks an EP group lies; try --dp {}", ep,
                                 dp, (dp + ep - 1) / ep * ep));
  std::pair<std::vector<Parameter>, std::vector<Parameter>> lists;
  for (Parameter& each : with_whole_experts(model)) {
    const std::string word = "expert";  // "layer3.expert5.up"
    const std::size_t at = each.name.find(word);
    if (at == std::string::npos)
      lists.first.push_back(std::move(each));
    else if (std::stol(each.name.substr(at + word.size())) < count / ep)
      lists.second.push_back(std::move(each));
  }
  return lists;
}

}  // namespace muonwalk::sim
