#include "tests/pipeline/model_case.hpp"

#include <algorithm>

namespace muonwalk::test {

ModelCase random_model(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto one_of = [&](std::vector<int> choices) { return choices[random() % choices.size()]; };
  ModelCase c;
  c.seed = seed;
  const int tp = one_of({1, 2, 2, 4}), pp = one_of({1, 2, 3}), dp = one_of({1, 2, 3, 4});
  c.grid = Grid().dp(dp).tp(tp).pp(pp);
  c.config.pieces = one_of({4, 8});
  c.config.heads = 8;
  c.config.kv_heads = one_of({1, 2, 4, 8});
  c.config.width = 8 * one_of({2, 4});
  c.config.hidden = c.config.pieces * one_of({1, 3});
  c.config.vocabulary = 24;
  c.config.layers = 3;
  c.config.tokens = one_of({1, 5, 9});
  c.config.tied = random() % 2 == 0;
  if (random() % 3 == 0) c.config.experts = one_of({4, 8}), c.config.chosen = one_of({1, 2});
  c.micro_batches = dp * one_of({1, 2, 4});
  c.sequences = one_of({1, 2});
  c.schedule = random() % 2 == 0 ? PipelineSchedule::gpipe : PipelineSchedule::one_f_one_b;
  return c;
}

std::string first_unplanned(const Plan& plan, const std::vector<Call>& calls, const Ledger& counted) {
  const std::vector<PlannedCall> planned = calls_of(plan);
  for (std::size_t i = 0; i < std::max(planned.size(), calls.size()); ++i) {
    if (i >= planned.size()) return "more than planned: " + muonwalk::text(calls[i]);
    if (i >= calls.size()) return "less than planned: " + muonwalk::text(planned[i].call);
    if (planned[i].call != calls[i])
      return muonwalk::text(calls[i]) + ", planned was " + muonwalk::text(planned[i].call);
  }
  const Traffic sum = ledger_of(plan).total(), found = counted.total();
  return sum.bytes_sent == found.bytes_sent && sum.messages_sent == found.messages_sent ? "" : "bytes or messages";
}

}  // namespace muonwalk::test
