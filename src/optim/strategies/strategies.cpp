// All strategies; and of these (a) to (d) and (f): the step of Muon as it is, on other layouts and with other gathers.
// A strategy that has a step of its own has a file of its own.
#include "src/layout/sharding.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/strategies/strategy.hpp"

namespace muonwalk {
namespace {

Layout equal_parts(const std::vector<Parameter>& parameters, const Grid& grid, Index bucket) {
  return plan_layout(parameters, grid, {bucket, 1, 1, Ownership::buckets, {}});
}

Layout one_part_each(const std::vector<Parameter>& parameters, const Grid& grid, Index bucket) {
  return plan_layout(parameters, grid, {bucket, 1, 1, Ownership::buffer, {}});
}

Layout dealt_in_turn(const std::vector<Parameter>& parameters, const Grid& grid, Index bucket) {
  return plan_layout(parameters, grid, {bucket, 1, 1, Ownership::matrices, round_robin_owners(parameters, grid.dp())});
}

Layout dealt_by_work(const std::vector<Parameter>& parameters, const Grid& grid, Index bucket) {
  return plan_layout(parameters, grid, {bucket, 1, 1, Ownership::matrices, balanced_owners(parameters, grid.dp())});
}

// Muon itself, with this gather. Where ranks own whole matrices, it gathers nothing over dp.
template <Gather gather = Gather::buckets, bool unrounded = false>
std::unique_ptr<Optimizer> muon(const Layout&, const MuonSettings& settings, int) {
  MuonSettings chosen = settings;
  chosen.gather = gather;
  chosen.gather_unrounded |= unrounded;
  return std::make_unique<Muon>(chosen);
}

}  // namespace

// (a) Every bucket is cut into equal parts (ZeRO-1), and before Newton–Schulz every rank of a DP group gathers every
// bucket. Whoever owns an element of a matrix orthogonalizes all of it. So did Megatron-LM's pull request 1428.
Strategy gather_everything() { return {'a', "gather everything", equal_parts, muon<>}; }

// (b) The buffer as a whole is cut into equal parts, so at most dp − 1 matrices lie on a boundary. Only these travel,
// each among its owners alone, and each owner orthogonalizes all of it. DeepSpeed's ZeRO-1 and 2 gather like this, and
// Megatron-LM's former distributed optimizer was cut like this.
Strategy boundary_matrices() { return {'b', "boundary matrices", one_part_each, muon<Gather::cut_matrices>}; }

// (c) Whole matrices, dealt out in turn (round robin). A gradient is reduced to its matrix's owner, and the owner sends
// new weights to all, so no matrix is cut and nothing is gathered for Newton–Schulz. DeepSpeed deals like this in
// ZeRO-3.
Strategy owner_in_turn() { return {'c', "owner, in turn", dealt_in_turn, muon<>}; }

// (d) Whole matrices again, the one with the most work in Newton–Schulz first, each to the rank that has least so far.
// Megatron-LM's layer-wise optimizer, torchtitan's Owned and Canzona deal like this, each with its own formula.
Strategy owner_by_work() { return {'d', "owner, by work", dealt_by_work, muon<>}; }

// (f) Matrices are dealt out over dp as in (d), by work. The ranks of the owner's TP group gather its slices, and then
// all of them do the same Newton–Schulz. (a) to (e) do so too. What is different here is that float32 travels, also
// where Newton–Schulz begins with rounding to bf16: Megatron-LM and NeMo-RL gather before they round. As rounding is
// elementwise, that changes no bit, and doubles the bytes.
Strategy tp_duplicated() { return {'f', "TP duplicated", owner_by_work().lay_out, muon<Gather::buckets, true>}; }

std::vector<double> work_of_owners(const Layout& layout, int ns_steps) { return sharding_of(layout, ns_steps).flops; }

std::vector<Strategy> strategies() {
  return {gather_everything(), boundary_matrices(), owner_in_turn(),    owner_by_work(),
          all_to_all(),        tp_duplicated(),     distributed_gram(), block_wise()};
}

std::optional<Strategy> strategy_of(const std::string& letter) {
  for (const Strategy& each : strategies())
    if (letter == std::string{each.letter} || letter == std::string{'(', each.letter, ')'}) return each;
  return std::nullopt;
}

}  // namespace muonwalk
