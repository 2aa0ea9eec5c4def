#include "src/train/sent_bytes.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "src/optim/adamw_step.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/master_weights.hpp"
#include "src/train/models.hpp"

namespace muonwalk::sim {
namespace {

constexpr std::int64_t SentBytes::*kPurposes[] = {&SentBytes::gradients, &SentBytes::updates, &SentBytes::slices,
                                                  &SentBytes::weights};
constexpr std::int64_t kThousand = 1000;

void add(SentBytes& sent, Phase phase, std::int64_t bytes) {
  if (bytes == 0) return;
  if (phase == phases::reduce_gradients || phase == phases::all_reduce_gradients)
    sent.gradients += bytes;
  else if (phase == phases::dp_gather)
    sent.updates += bytes;
  else if (phase == phases::tp_gather)
    sent.slices += bytes;
  else if (phase == phases::gather_weights)
    sent.weights += bytes;
  else
    throw std::logic_error(
        fmt::format("{} bytes were sent in the phase \"{}\", and nobody knows for what", bytes, phase));
}

std::unique_ptr<Optimizer> make_muon(Precision precision, int threads, Products products) {
  MuonSettings settings = muon_settings(precision, threads, products);
  settings.newton_schulz.steps = kNewtonSchulzSteps;
  return std::make_unique<Muon>(settings);
}

}  // namespace

SentBytes sent_bytes(const Plan& plan) {
  SentBytes sent;
  for (const PlannedCall& each : calls_of(plan)) add(sent, each.phase, each.traffic.bytes_sent);
  return sent;
}

SentCounter::SentCounter(const Ledger& ledger) : ledger_(ledger), seen_(ledger.total().bytes_sent) {}

void SentCounter::begin(Phase phase) {
  const std::int64_t now = ledger_.total().bytes_sent;
  add(sent_, phase_, now - seen_);
  seen_ = now;
  phase_ = phase;
}

SentBytes SentCounter::end() {
  begin(Phase());
  return sent_;
}

Matrix matrix_of(const std::vector<SentBytes>& sent) {
  Matrix matrix(static_cast<Index>(sent.size()), 2 * Index{std::size(kPurposes)});
  for (Index row = 0; row < matrix.rows(); ++row)
    for (Index i = 0; i < Index{std::size(kPurposes)}; ++i) {
      const std::int64_t bytes = sent[static_cast<std::size_t>(row)].*kPurposes[i];
      matrix(row, 2 * i) = static_cast<float>(bytes / kThousand);
      matrix(row, 2 * i + 1) = static_cast<float>(bytes % kThousand);
    }
  return matrix;
}

std::vector<SentBytes> sent_from(const Matrix& matrix) {
  std::vector<SentBytes> sent(static_cast<std::size_t>(matrix.rows()));
  for (Index row = 0; row < matrix.rows(); ++row)
    for (Index i = 0; i < Index{std::size(kPurposes)}; ++i)
      sent[static_cast<std::size_t>(row)].*kPurposes[i] =
          static_cast<std::int64_t>(matrix(row, 2 * i)) * kThousand + static_cast<std::int64_t>(matrix(row, 2 * i + 1));
  return sent;
}

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
