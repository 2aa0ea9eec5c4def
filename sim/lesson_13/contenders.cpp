#include "sim/lesson_13/contenders.hpp"

#include "sim/lesson_13/ledger_tables.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/zero1_adamw.hpp"
#include "src/train/models.hpp"

namespace muonwalk::sim {

namespace {

std::unique_ptr<Optimizer> make_muon(Precision precision, int threads, Products products) {
  MuonSettings settings = muon_settings(precision, threads, products);
  settings.ns_steps = kNewtonSchulzSteps;
  return std::make_unique<Muon>(settings);
}

Layout published_layout(const Grid& grid, Ownership ownership = Ownership::buckets) {
  LayoutOptions options;
  options.parameter_alignment = 1;
  options.ownership = ownership;
  return plan_layout(published_run_parameters(), grid, options);
}

// What all ranks send together: where a matrix has one owner, each sends something else.
std::int64_t sent_by_all(Who who, const Layout& layout) {
  std::int64_t sum = 0;
  for (int rank = 0; rank < layout.grid.size(); ++rank)
    sum += planned(contenders()[who], layout, layout.grid.place(rank)).total();
  return sum;
}

}  // namespace

const std::vector<Contender>& contenders() {
  static const std::vector<Contender> all = {
      {"AdamW, all-reduce", [](int, Products) { return std::make_unique<AdamW>(AdamWSettings()); }},
      {"AdamW, ZeRO-1", [](int, Products) { return std::make_unique<Zero1AdamW>(AdamWSettings()); }},
      {"Muon, gathers in bf16", [](int threads, Products p) { return make_muon(Precision::bf16, threads, p); }},
      {"Muon, gathers in float32", [](int threads, Products p) { return make_muon(Precision::fp32, threads, p); }}};
  return all;
}

SentBytes planned(const Contender& contender, const Layout& layout, const Place& place) {
  return sent_bytes(contender.make(1, Products::chain)->plan(layout, place));
}

SentBytes published(Who who, const Grid& grid) {
  return planned(contenders()[who], published_layout(grid), grid.place(0));
}

std::string published_tables() {
  std::string text;
  for (const Grid& grid : {Grid().dp(2).tp(2), Grid().dp(4)}) {
    std::vector<LedgerRow> rows;
    for (const Who who : {all_reduce, zero1, muon_bf16, muon_fp32})
      rows.push_back({contenders()[who].name, published(who, grid)});
    text += (text.empty() ? "" : "\n") + ledger_table("published sizes, " + grid.text(), rows, zero1);
  }
  return text;
}

std::string published_ratios() {
  const Grid square = Grid().dp(2).tp(2), line = Grid().dp(4);
  const SentBytes muon = published(muon_bf16, square);
  const std::int64_t reduced = published(all_reduce, line).total(), sharded = published(zero1, line).total();
  return ratio_table(
      "what is compared",
      {{"Muon's two gathers, dp 2 × tp 2", muon.gathers(), "AdamW, all-reduce, dp 4", reduced,
        "what the 0.57 compared, in bytes: two layouts, two types, no gradients and no weights of Muon"},
       {"all of Muon, dp 2 × tp 2", muon.total(), "AdamW, all-reduce, dp 4", reduced,
        "nothing left out, still two layouts: close to 0.57, by coincidence"},
       {"all of Muon, dp 2 × tp 2", muon.total(), "AdamW, ZeRO-1, dp 2 × tp 2", published(zero1, square).total(),
        "like for like: the same layout, the same types, nothing left out"},
       {"Muon in float32, dp 4", published(muon_fp32, line).total(), "AdamW, ZeRO-1, dp 4", sharded,
        "without TP: three moves of 4 B against two"},
       {"Muon in bf16, dp 4", published(muon_bf16, line).total(), "AdamW, ZeRO-1, dp 4", sharded,
        "the update in 2 B: the upper bound of (1, 1.25]"},
       {"Muon, an owner for each matrix", sent_by_all(muon_bf16, published_layout(line, Ownership::matrices)),
        "AdamW, ZeRO-1, all ranks", sent_by_all(zero1, published_layout(line)),
        "no DP gather: the lower bound of (1, 1.25]"}});
}

}  // namespace muonwalk::sim
