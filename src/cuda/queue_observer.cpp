#include "src/cuda/queue_observer.hpp"

#include <utility>

namespace muonwalk::cuda {
namespace {

thread_local QueueObserver* observer_of_thread = nullptr;

}  // namespace

QueueObserverScope::QueueObserverScope(QueueObserver& observer)
    : previous_(std::exchange(observer_of_thread, &observer)) {}

QueueObserverScope::~QueueObserverScope() { observer_of_thread = previous_; }

void tell_queued(const Stream& stream, Queued what, Index bytes) {
  if (observer_of_thread != nullptr) observer_of_thread->queued(stream, what, bytes);
}

bool queue_is_observed() { return observer_of_thread != nullptr; }

void tell_waits(const Stream& stream) {
  if (observer_of_thread != nullptr) observer_of_thread->waits(stream);
}

}  // namespace muonwalk::cuda
