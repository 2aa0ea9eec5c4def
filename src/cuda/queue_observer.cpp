#include "src/cuda/queue_observer.hpp"

#include <utility>

#include "src/cuda/device.hpp"

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

// The driver is asked where both ends lie, and only where somebody wants to know.
void tell_copied(const Stream& stream, const void* to, const void* from, Index bytes) {
  if (observer_of_thread == nullptr) return;
  const bool to_device = is_device_pointer(to), from_device = is_device_pointer(from);
  const Queued between = to_device && !from_device   ? Queued::copy_to_device
                         : from_device && !to_device ? Queued::copy_to_host
                                                     : Queued::copy_on_device;
  observer_of_thread->queued(stream, between, bytes);
}

void tell_waits(const Stream& stream) {
  if (observer_of_thread != nullptr) observer_of_thread->waits(stream);
}

}  // namespace muonwalk::cuda
