#include "sim/ranks/progress.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <vector>

#include "src/errors.hpp"

namespace muonwalk::sim {

Progress::Progress(int ranks) : ranks_(ranks) {
  void* memory = mmap(nullptr, sizeof(ProgressSlot) * static_cast<std::size_t>(ranks), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw RunError("the memory that ranks share with their parent could not be mapped");
  slots_ = static_cast<ProgressSlot*>(memory);
  for (int rank = 0; rank < ranks; ++rank) {
    new (&slots_[rank]) ProgressSlot;
    slots_[rank].stage = ProgressSlot::Stage::starting;
    slots_[rank].signs = 0;
    slots_[rank].waits_for = ProgressSlot::kNobody;
    slots_[rank].waits_in = CollectiveKind::barrier;
    enter_step(rank, "rendezvous");
  }
}

Progress::~Progress() { munmap(slots_, sizeof(ProgressSlot) * static_cast<std::size_t>(ranks_)); }

void Progress::enter_step(int rank, const std::string& title) {
  char* text = slots_[rank].step;
  const std::size_t length = std::min(title.size(), sizeof slots_[rank].step - 1);
  std::copy_n(title.begin(), length, text);
  text[length] = '\0';
  ++slots_[rank].signs;
}

std::string Progress::cycle(bool hopeless) const {
  constexpr std::size_t kNamed = 8;  // of a longer cycle only the first ranks are named
  for (int first = 0; first < ranks_; ++first) {
    std::vector<int> path(1, first);
    for (int next = slots_[first].waits_for; next > first; next = slots_[next].waits_for) {
      if (std::find(path.begin(), path.end(), next) != path.end()) break;
      path.push_back(next);
    }
    if (slots_[path.back()].waits_for != first || path.size() < 2) continue;
    if (path.size() == 2) {  // one that sends and one that receives have met: their message is on its way
      const CollectiveKind one = slots_[path[0]].waits_in, other = slots_[path[1]].waits_in;
      if ((one == CollectiveKind::send && other == CollectiveKind::recv) ||
          (one == CollectiveKind::recv && other == CollectiveKind::send))
        continue;
    }
    std::vector<std::string> waits;
    bool sends = false, messages = false, collectives = false;
    for (std::size_t i = 0; i < path.size(); ++i) {
      const CollectiveKind kind = slots_[path[i]].waits_in;
      const bool message = kind == CollectiveKind::send || kind == CollectiveKind::recv;
      sends = sends || kind == CollectiveKind::send;
      messages = messages || message;
      collectives = collectives || !message;
      waits.push_back(fmt::format("{} for rank {}", collective_name(kind), path[(i + 1) % path.size()]));
    }
    if (hopeless && !sends && !(messages && collectives)) continue;
    waits.resize(std::min(waits.size(), kNamed));
    std::string text = fmt::format("rank {} waits in {}", first, fmt::join(waits, ", which waits in "));
    if (path.size() > kNamed) text += fmt::format(", and so on around {} ranks", path.size());
    if (messages && collectives) return "the ranks do not make the same calls: " + text;
    if (sends)
      text +=
          "; a send returns when its receiver has taken the message, so ranks that send to each other post it with "
          "isend, call recv, and then wait for the isend";
    return text;
  }
  return "";
}

std::string Progress::who_waits(const std::vector<bool>& has_left) const {
  const std::string waits_for_each_other = cycle();
  if (!waits_for_each_other.empty()) return waits_for_each_other;
  constexpr std::size_t kNamed = 8;
  std::vector<std::string> all;
  for (const bool left : {false, true})
    for (int rank = 0; rank < ranks_; ++rank) {
      if (has_left[static_cast<std::size_t>(rank)] != left) continue;
      const ProgressSlot& slot = slots_[rank];
      if (left)
        all.push_back(fmt::format("rank {} has left the step", rank));
      else if (slot.waits_for < 0)
        all.push_back(fmt::format("rank {} waits for a message that nobody sends", rank));
      else
        all.push_back(fmt::format("rank {} waits in {} for rank {}", rank, collective_name(slot.waits_in),
                                  slot.waits_for.load()));
    }
  if (all.size() > kNamed) {
    const std::string rest = fmt::format("and {} more", all.size() - kNamed);
    all.resize(kNamed);
    all.push_back(rest);
  }
  return fmt::format("{}", fmt::join(all, "; "));
}

}  // namespace muonwalk::sim
