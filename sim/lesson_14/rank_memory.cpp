#include "sim/lesson_14/rank_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace muonwalk::sim {
namespace {

// Visits every number with its name. `Memory` is a RankMemory that may be changed or not.
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

Index sum_of(const Plan& plan) {
  Index bytes = 0;
  for (const Memory& memory : held_between_steps(plan)) bytes += memory.bytes();
  return bytes;
}

}  // namespace

Index RankMemory::held() const {
  Index bytes = 0;
  for (const auto& [what, of_what] : kept) bytes += of_what;
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
  memory.kept_for_hidden = sum_of(hidden);
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

}  // namespace muonwalk::sim
