#include "src/train/contenders.hpp"

#include "src/optim/adamw_step.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/master_weights.hpp"
#include "src/train/models.hpp"

namespace muonwalk::sim {

namespace {

std::unique_ptr<Optimizer> make_muon(Precision precision, int threads, Products products) {
  MuonSettings settings = muon_settings(precision, threads, products);
  settings.newton_schulz.steps = kNewtonSchulzSteps;
  return std::make_unique<Muon>(settings);
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

SentBytes planned(const Contender& contender, const Layout& layout, const Place& place, Halved halved) {
  const Plan plan = contender.make(1, Products::chain)->plan(layout, place);
  if (halved == Halved::nothing) return sent_bytes(plan);
  SentBytes sent = sent_bytes(with_master_weights(plan, layout));
  if (halved == Halved::weights_and_gradients) sent.gradients /= 2;
  return sent;
}

Layout published_layout(const Grid& grid, Ownership ownership) {
  LayoutOptions options;
  options.parameter_alignment = 1;
  options.ownership = ownership;
  return plan_layout(published_run_parameters(), grid, options);
}

SentBytes published(Who who, const Grid& grid, Halved halved) {
  return planned(contenders()[who], published_layout(grid), grid.place(0), halved);
}

}  // namespace muonwalk::sim
