#include "sim/ranks/stop_request.hpp"

#include <sys/mman.h>

#include <new>

#include "src/errors.hpp"

namespace muonwalk::sim {

struct StopRequest::Shared {
  std::atomic<int> asked{0};
  std::atomic<int> last_step{0};      // 0: the run goes on
  std::atomic<int> decided_until{0};  // written after last_step: whoever sees a step here sees what was decided in it
};
static_assert(std::atomic<int>::is_always_lock_free, "several processes and the handler of a signal share them");

StopRequest::StopRequest() {
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw RunError("the memory in which ranks are asked to stop could not be mapped");
  shared_ = new (memory) Shared;
}

StopRequest::~StopRequest() { munmap(shared_, sizeof(Shared)); }

std::atomic<int>& StopRequest::asked() { return shared_->asked; }

void StopRequest::decide(int step) {
  if (has_decided(step)) return;  // a second time in a step would be too late: others may have left it
  if (shared_->asked != 0 && shared_->last_step == 0) shared_->last_step = step;
  shared_->decided_until.store(step, std::memory_order_release);
}

bool StopRequest::has_decided(int step) const { return shared_->decided_until.load(std::memory_order_acquire) >= step; }

bool StopRequest::stops_after(int step) const {
  const int last = shared_->last_step;
  return last != 0 && last <= step;
}

}  // namespace muonwalk::sim
