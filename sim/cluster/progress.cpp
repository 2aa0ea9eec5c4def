#include "sim/cluster/progress.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "src/errors.hpp"

namespace muonwalk::sim {

ProgressBoard::ProgressBoard(int ranks) : ranks_(ranks) {
  void* memory = mmap(nullptr, sizeof(ProgressSlot) * static_cast<std::size_t>(ranks), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw RunError("the memory that ranks share with their parent could not be mapped");
  slots_ = static_cast<ProgressSlot*>(memory);
  for (int rank = 0; rank < ranks; ++rank) {
    new (&slots_[rank]) ProgressSlot;
    slots_[rank].stage = ProgressSlot::Stage::starting;
    slots_[rank].in_exchange = false;
    slots_[rank].signs = 0;
    enter_step(rank, "rendezvous");
  }
}

ProgressBoard::~ProgressBoard() { munmap(slots_, sizeof(ProgressSlot) * static_cast<std::size_t>(ranks_)); }

void ProgressBoard::enter_step(int rank, const std::string& title) {
  char* text = slots_[rank].step;
  const std::size_t length = std::min(title.size(), sizeof slots_[rank].step - 1);
  std::copy_n(title.begin(), length, text);
  text[length] = '\0';
  ++slots_[rank].signs;
}

std::string ProgressBoard::step(int rank) const { return slots_[rank].step; }

}  // namespace muonwalk::sim
