#include "sim/ranks/rank_side.hpp"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "sim/ranks/gloo_groups.hpp"
#include "sim/transport/gloo_device.hpp"

namespace muonwalk::sim {
namespace {

// Ranks that are processes leave timeouts to the parent, which sees all of them and can name the one that is to
// blame.
constexpr std::chrono::milliseconds kRanksWait = std::chrono::hours(24);

}  // namespace

// Tells the parent of an exception before the sockets close, so that it is known as the cause.
template <class Work>
void RankSide::guarded(const Work& work) {
  try {
    work();
  } catch (...) {
    send(failure_now());
    _exit(3);
  }
}

RankSide::RankSide(const Options& options, int rank, int reports, int goodbye, KeyStore& store, Progress& progress)
    : rank_(rank), reports_(reports), goodbye_(goodbye), progress_(&progress) {
  speaking = this;
  if (options.launch)
    store.on_set([this](const std::string& key, const std::vector<char>& value) { send(Posted{key, value}); });
  GlooDevice::on_overrun([](const char* sentence) { speaking->end_with(sentence); });
  guarded([&] {
    have_fault(options.fault, rank, 0);
    progress_->slot(rank).stage = ProgressSlot::Stage::connecting;
    auto groups = connect_over_gloo(options, rank, store, progress, kRanksWait);
    session_.emplace(options, rank, std::move(groups), progress);
    progress_->slot(rank).stage = ProgressSlot::Stage::running;
  });
  send(EndOfStep());
}

void RankSide::run(int step, const std::string& title, const RankBody& body) {
  guarded([&] {
    for (Report& report : session_->run(step, title, body)) tell(report);
  });
  send(EndOfStep());
}

void RankSide::leave() {
  progress_->slot(rank_).stage = ProgressSlot::Stage::finished;
  char nothing;
  while (read(goodbye_, &nothing, 1) < 0 && errno == EINTR) {
  }
  _exit(0);
}

void RankSide::tell(Report& report) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!reports_.write(report)) _exit(3);  // the parent is gone, and nobody would hear a reason
}

void RankSide::send(Report last) {
  tell(last);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!reports_.flush()) _exit(3);
}

// Called on another thread, while this one connects.
void RankSide::end_with(const std::string& sentence) {
  send(Failed{Failed::Kind::stranger, sentence, monotonic_seconds()});
  _exit(3);
}

}  // namespace muonwalk::sim
