#pragma once

#include "src/numerics/matrix.hpp"

namespace muonwalk::cuda {

class Stream;

/// What a stream is handed.
enum class Queued {
  kernel,  ///< One of ours.
  copy_to_device,
  copy_to_host,
  copy_on_device,
  set,     ///< Memory of the device is set to zero.
  library  ///< A call of a library on top of CUDA, whose kernels only that library knows.
};

/// Is told what a thread hands to streams, and when its host waits for one of them, as it happens: where the calls to
/// the driver are made, and not where somebody means to make them.
class QueueObserver {
 public:
  virtual ~QueueObserver() = default;
  /// `stream` was handed something; `bytes` of it are copied or set.
  virtual void queued(const Stream& stream, Queued what, Index bytes) = 0;
  /// The host begins to wait until all is done that `stream` was handed.
  virtual void waits(const Stream& stream) = 0;
};

/// While it lives, `observer` is told what the calling thread does. Scopes nest: the inner one is told, and at its end
/// the outer one is again.
class QueueObserverScope {
 public:
  /// `observer` must outlive the scope.
  explicit QueueObserverScope(QueueObserver& observer);
  ~QueueObserverScope();
  QueueObserverScope(const QueueObserverScope&) = delete;
  QueueObserverScope& operator=(const QueueObserverScope&) = delete;

 private:
  QueueObserver* previous_;
};

/// Tell the calling thread's observer, where it has one: what stands in this room does so by itself, a library on top
/// of CUDA is told of by whoever calls it.
/// @{
void tell_queued(const Stream& stream, Queued what, Index bytes = 0);
void tell_waits(const Stream& stream);
/// @}

/// The calling thread has an observer.
bool queue_is_observed();

}  // namespace muonwalk::cuda
