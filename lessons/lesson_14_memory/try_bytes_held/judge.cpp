#include "lesson_14_memory.hpp"
#include "lessons/lesson_14_memory/try_bytes_held/contract.hpp"
#include "sim/classroom/exercise.hpp"

namespace muonwalk::sim {
namespace {

const char* const kKeptKinds[] = {"weights", "gradients", "master weights", "state"};

// A number each, in a matrix of one element.
std::vector<NamedMatrix> as_answer(const HeldBytes& held) {
  MemoryMeter uncounted;  // for the comparison
  const MeterScope scope(uncounted);
  std::vector<NamedMatrix> all;
  const Index bytes[] = {held.weights, held.gradients, held.masters, held.state};
  for (std::size_t i = 0; i < std::size(bytes); ++i)
    all.push_back({kKeptKinds[i], Matrix(1, 1, {static_cast<float>(bytes[i])}), 0, 0});
  return all;
}

const lesson_14::Way& zero1_muon() { return lesson_14::kWays.back(); }

// What the lesson's own plan says.
HeldBytes planned_bytes(const RankInfo& rank) {
  std::map<std::string, Index> kept = lesson_14::planned(rank, zero1_muon()).kept;
  return {kept["weights"], kept["gradients"], kept["master weights"],
          kept["momentum"] + kept["first moments"] + kept["second moments"]};
}

// What it would be of the parameters alone.
HeldBytes without_padding(const RankInfo& rank) {
  HeldBytes held;
  const Layout layout = lesson_14::layout(rank, zero1_muon());
  for (const Buffer& buffer : layout.buffers)
    for (const DistMeta& meta : buffer.parameters) {
      const Index own = layout.owned_range(meta, rank.place.dp).size();
      held.weights += 2 * meta.shape.size();
      held.gradients += 4 * meta.shape.size();
      held.masters += 4 * own;
      held.state += (buffer.group == 0 ? 4 : 8) * own;
    }
  return held;
}

Matrix number(Index bytes) { return Matrix(1, 1, {static_cast<float>(bytes)}); }

Task bytes_held(BytesHeld* yours) {
  Task task;
  task.grids = {Grid().dp(5), Grid().dp(2).tp(2), Grid().dp(1)};  // with dp 5 there is padding
  task.prepare = [yours](Rank& rank) -> Answer {
    const Layout layout = lesson_14::layout(rank, zero1_muon());
    const int dp_rank = rank.place.dp;
    return [=] { return as_answer(yours(layout, dp_rank, 0)); };
  };
  task.reference = [](const RankInfo& info) { return as_answer(planned_bytes(info)); };
  task.plan = [](const RankInfo& info) { return Plan{info.grid, info.place, {}}; };
  task.looks = [](const RankInfo& info) {
    const HeldBytes right = planned_bytes(info), bare = without_padding(info);
    const Index own = right.masters / 4, whole = right.gradients / 4;
    std::vector<Look> looks;
    const auto add = [&](int kind, const char* what, Index bytes) {
      looks.push_back({what, number(bytes), kKeptKinds[kind]});
    };
    const Index without[] = {bare.weights, bare.gradients, bare.masters, bare.state};
    for (int kind = 0; kind < 4; ++kind) add(kind, "without the padding", without[kind]);
    add(0, "what it would be if they were sharded over the ranks", 2 * own);
    add(0, "what it would be if they were float32", 4 * whole);
    add(1, "what it would be if they were sharded over the ranks", 4 * own);
    add(1, "what it would be if they were bfloat16", 2 * whole);
    add(2, "what it would be if every rank kept all of them", 4 * whole);
    add(2, "what it would be if they were bfloat16", 2 * own);
    add(3, "as many bytes as the masters take, which is right of Muon alone", 4 * own);
    add(3, "what it would be if AdamW stepped all of it", 8 * own);
    add(3, "right but for which group is Muon's", 12 * own - right.state);
    add(3, "right but for the type, which is float32", right.state / 2);
    return looks;
  };
  return task;
}

const bool bytes_held_added = add_exercise("lesson_14_memory", "bytes_held", bytes_held);

}  // namespace
}  // namespace muonwalk::sim
