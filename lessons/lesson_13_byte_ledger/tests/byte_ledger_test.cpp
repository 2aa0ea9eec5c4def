// What a step sends, by what it is for: against formulas over random layouts, and the figures that were published.

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "lessons/lesson_13_byte_ledger/ledger_tables.hpp"
#include "src/optim/adamw_step.hpp"
#include "src/optim/full_step.hpp"
#include "src/text/units.hpp"
#include "src/train/models.hpp"
#include "src/train/sent_bytes.hpp"
#include "tests/layout/random_layout.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

Plan muon_in(const Layout& layout, const Place& place, Precision precision, Gather gather = Gather::buckets) {
  MuonSettings settings;
  settings.newton_schulz.precision = precision;
  settings.gather = gather;
  return muon_plan(layout, place, settings);
}
Plan zero_1(const Layout& layout, const Place& place) { return Zero1AdamW(AdamWSettings()).plan(layout, place); }
Plan all_reduced(const Layout& layout, const Place& place) { return AdamW(AdamWSettings()).plan(layout, place); }

// The first rank's, on one bucket without padding, as the published run had it.
SentBytes published(const Grid& grid, int rank, Plan (*plan)(const Layout&, const Place&)) {
  LayoutOptions options;
  options.parameter_alignment = 1;
  return sent_bytes(plan(plan_layout(published_run_parameters(), grid, options), grid.place(rank)));
}
Plan in_bf16(const Layout& layout, const Place& place) { return muon_in(layout, place, Precision::bf16); }
Plan in_fp32(const Layout& layout, const Place& place) { return muon_in(layout, place, Precision::fp32); }

// A ledger that has sent so much more.
void send(Ledger& ledger, std::int64_t bytes) {
  ledger.count(ledger.begin_call("dp", CollectiveKind::all_gather, ElementType::float32), {true, 1, bytes});
}

}  // namespace

TEST_CASE("on random layouts every move has the bytes that follow from who owns what") {
  int with_tp = 0, without = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    RandomLayout random(seed);
    random.own(seed % 3 == 0 ? Ownership::buckets : seed % 3 == 1 ? Ownership::buffer : Ownership::matrices);
    CAPTURE(seed);
    const Layout layout = random.plan();
    const Index dp = layout.grid.dp(), tp = layout.grid.tp();
    for (const Precision precision : {Precision::fp32, Precision::bf16})
      for (int rank = 0; rank < layout.grid.size(); ++rank) {
        const Place place = layout.grid.place(rank);
        const Index gathered = precision == Precision::bf16 ? 2 : 4;
        SentBytes expected;
        for (std::size_t b = 0; b < layout.buffers.size(); ++b) {
          for (std::size_t k = 0; k < layout.buffers[b].buckets.size(); ++k) {
            const Index own = layout.dp_slice(int(b), int(k), place.dp).size();
            expected.gradients += 4 * (layout.buffers[b].buckets[k].range.size() - own);
            if (!layout.whole_matrices()) expected.updates += gathered * own * (dp - 1);
            expected.weights += 4 * own * (dp - 1);
          }
          for (const DistMeta& meta : layout.buffers[b].parameters)
            if (meta.tp_split_dim != SplitDim::none && !layout.owned_range(meta, place.dp).empty())
              expected.slices += gathered * meta.shape.size() * (tp - 1);
        }
        const Plan plan = muon_in(layout, place, precision);
        CHECK(sent_bytes(plan) == expected);
        CHECK(sent_bytes(plan).total() == ledger_of(plan).total().bytes_sent);
        expected.updates = expected.slices = 0;
        CHECK(sent_bytes(zero_1(layout, place)) == expected);
        CHECK(sent_bytes(all_reduced(layout, place)).total() ==
              ledger_of(all_reduced(layout, place)).total().bytes_sent);
      }
    (tp > 1 ? with_tp : without) += 1;
  }
  CHECK(with_tp > 100);
  CHECK(without > 40);
}

TEST_CASE("without TP, Muon in bf16 sends from 1 to 1.25 times what ZeRO-1 AdamW does, in float32 to 1.5 times") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    RandomLayout random(seed);
    random.grid = Grid().dp(random.grid.dp() + 1);
    const Layout layout = random.plan();
    CAPTURE(seed);
    std::int64_t muon = 0, cut = 0, wide = 0, adamw = 0;
    for (int rank = 0; rank < layout.grid.size(); ++rank) {
      const Place place = layout.grid.place(rank);
      muon += sent_bytes(muon_in(layout, place, Precision::bf16)).total();
      cut += sent_bytes(muon_in(layout, place, Precision::bf16, Gather::cut_matrices)).total();
      wide += sent_bytes(muon_in(layout, place, Precision::fp32)).total();
      adamw += sent_bytes(zero_1(layout, place)).total();
    }
    // With weights in bf16, and with gradients as well, both are above that bound.
    const auto all_ranks = [&](Who who, Halved halved) {
      std::int64_t sum = 0;
      for (int rank = 0; rank < layout.grid.size(); ++rank)
        sum += planned(contenders()[who], layout, layout.grid.place(rank), halved).total();
      return sum;
    };
    CHECK(all_ranks(muon_bf16, Halved::nothing) == muon);
    CHECK(8 * all_ranks(zero1, Halved::weights) == 6 * adamw);
    CHECK(8 * all_ranks(muon_bf16, Halved::weights) == 8 * adamw);
    CHECK(8 * all_ranks(zero1, Halved::weights_and_gradients) == 4 * adamw);
    CHECK(8 * all_ranks(muon_bf16, Halved::weights_and_gradients) == 6 * adamw);
    CHECK(8 * muon == 10 * adamw);
    CHECK(8 * wide == 12 * adamw);
    CHECK(cut >= adamw);
    CHECK(8 * cut <= 10 * adamw);
  }
}

TEST_CASE(
    "the published sizes: 63.4 MB against 37.3 on dp 2 × tp 2, 26.1 to 27.0 for the gathers alone, 109.1 on dp 4") {
  const Grid square = Grid().dp(2).tp(2), line = Grid().dp(4);
  const SentBytes muon = published(square, 0, in_bf16), last = published(square, 3, in_bf16);
  const SentBytes adamw = published(square, 0, zero_1), reduced = published(line, 0, all_reduced);
  CHECK(megabytes_text(muon.total()) == "63.4 MB");
  CHECK(megabytes_text(muon.gathers()) == "26.1 MB");
  CHECK(megabytes_text(last.gathers()) == "27.0 MB");
  CHECK(megabytes_text(adamw.total()) == "37.3 MB");
  CHECK(megabytes_text(reduced.total()) == "109.1 MB");
  CHECK(reduced.total() == Index{18184496} * 4 * 2 * 3 / 4);
  CHECK(ratio_text(muon.total(), adamw.total()) == "1.70");
  CHECK(ratio_text(muon.total(), reduced.total()) == "0.58");
  CHECK(ratio_text(published(line, 0, in_bf16).total(), published(line, 0, zero_1).total()) == "1.25");
  CHECK(ratio_text(published(line, 0, in_fp32).total(), published(line, 0, zero_1).total()) == "1.50");
  // Of the ratios that are printed: weights in bf16, gradients as well.
  const std::string ratios = published_ratios();
  for (const auto& [begin, ratio] :
       {std::pair("\n  weights: 4 + 2 + 2 B ", " 1.33\n"), {"\n  gradients as well: 2 + 2 + 2 B ", " 1.50\n"}}) {
    CAPTURE(begin);
    const std::size_t at = ratios.find(begin);
    REQUIRE(at != std::string::npos);
    CHECK(ratios.find(ratio, at) == ratios.find('\n', at + 1) - 5);
  }
  Index elements = 0, small = 0;
  for (const Parameter& parameter : published_run_parameters()) elements += parameter.shape.size();
  for (const Parameter& parameter : small_published_run_parameters()) small += parameter.shape.size();
  CHECK(elements == 18184496);  // as published
  CHECK(small < elements / 200);
}

TEST_CASE("a counter books what is sent for the phase in which it is sent") {
  Ledger ledger;
  send(ledger, 1000);  // before the step
  SentCounter counter(ledger);
  counter.begin(phases::reduce_gradients);
  send(ledger, 1);
  counter.begin(phases::momentum);
  counter.begin(phases::dp_gather);
  send(ledger, 20);
  for (int matrix = 0; matrix < 2; ++matrix) {
    counter.begin(phases::tp_gather);
    send(ledger, 300);
    counter.begin(phases::orthogonalize);
    counter.begin(phases::apply);
  }
  counter.begin(phases::gather_weights);
  send(ledger, 4000);
  send(ledger, 4000);
  const SentBytes sent = counter.end();
  CHECK(sent.gradients == 1);
  CHECK(sent.updates == 20);
  CHECK(sent.slices == 600);
  CHECK(sent.weights == 8000);
  CHECK(sent.gathers() == 620);
  CHECK(sent.total() == 8621);

  SentCounter of_adamw(ledger);
  of_adamw.begin(phases::all_reduce_gradients);
  send(ledger, 7);
  CHECK(of_adamw.end().gradients == 7);
}

TEST_CASE("what is sent in a phase that sends nothing, or in none, is an error and not a row that lacks it") {
  Ledger ledger;
  SentCounter in_work(ledger);
  in_work.begin(phases::orthogonalize);
  send(ledger, 5);
  CHECK_THROWS_WITH_AS(in_work.end(), "5 bytes were sent in the phase \"Newton–Schulz\", and nobody knows for what",
                       std::logic_error);
  SentCounter before(ledger);
  send(ledger, 5);
  CHECK_THROWS_WITH_AS(before.begin(phases::reduce_gradients),
                       "5 bytes were sent in the phase \"\", and nobody knows for what", std::logic_error);
  Plan plan{Grid().dp(2), Place(), {}};
  plan.work(phases::momentum, {1, 4});
  plan.call("dp", CollectiveKind::all_gather, ElementType::float32, 4, 8);
  CHECK_THROWS_AS(sent_bytes(plan), std::logic_error);
}

TEST_CASE("as a matrix no byte is lost, up to 16 GB") {
  const std::vector<SentBytes> sent = {{0, 1, 999, 1000}, {16777217, 63406079, 15999999999, 1001}, {}};
  const std::vector<SentBytes> back = sent_from(matrix_of(sent));
  REQUIRE(back.size() == sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) CHECK(back[i] == sent[i]);
}

TEST_CASE("tables: a dash where nothing is sent or compared with, and the ratio to the row that was named") {
  const std::string text = ledger_table("who", {{"first", {10, 0, 0, 10}}, {"second", {10, 5, 1500, 10}}}, 0);
  CHECK(text ==
        "who     gradients  DP gather  TP gather  weights  all, in B  to ZeRO-1\n"
        "first          10          –          –       10         20       1.00\n"
        "second         10          5      1,500       10      1,525      76.25");
  CHECK_THROWS_AS(ledger_table("who", {{"first", {1, 0, 0, 0}}}, 1), std::out_of_range);
}
