#include "sim/transport/nccl/nccl_group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "src/errors.hpp"

namespace muonwalk::sim {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLookAtPeers{20};
// How long a rank waits for what it has given up, or for others that leave as well.
constexpr milliseconds kLeave{5000};

// What a wait does between two looks. Most waits are short. In a long one the looks get rarer, down to fifty a second:
// a rank that waits should hardly need a processor, and who watches takes one that does for one that computes.
class Pauses {
 public:
  void pause() {
    if (++looks_ <= 100) return std::this_thread::yield();
    const auto waited = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - began_);
    std::this_thread::sleep_for(
        std::clamp(waited / 50, std::chrono::microseconds(50), std::chrono::microseconds(20000)));
  }

 private:
  Clock::time_point began_ = Clock::now();
  int looks_ = 0;
};

}  // namespace

NcclGroup::NcclGroup(Member member, const cuda::Device& device, const nccl::UniqueId& id, milliseconds timeout,
                     PeersAreThere peers_are_there)
    : member_(std::move(member)),
      device_(device),
      stream_(device, "NCCL " + member_.group),
      timeout_(timeout),
      peers_are_there_(std::move(peers_are_there)) {
  deadline_ = next_look_ = Clock::now();
  deadline_ += timeout_;
  device_.make_current();
  nccl::Config config;
  nccl::Comm* comm = nullptr;
  const nccl::Result result = nccl_library().CommInitRankConfig(&comm, member_.size, id, member_.rank, &config);
  comm_ = comm;
  try {
    check_soon(result, "ncclCommInitRankConfig");
  } catch (...) {  // the destructor of an object that was never whole does not run
    abort();
    throw;
  }
}

NcclGroup::~NcclGroup() { abort(); }

void NcclGroup::begin(CollectiveKind kind) {
  doing_ = collective_name(kind);
  deadline_ = Clock::now() + timeout_;
  device_.make_current();
}

void NcclGroup::together(const std::function<void()>& work) {
  check(nccl_library().GroupStart(), "ncclGroupStart");
  in_group_ = true;
  try {
    work();
  } catch (...) {
    in_group_ = false;
    nccl_library().GroupEnd();  // NCCL counts open groups by thread; whatever it says is a consequence
    throw;
  }
  in_group_ = false;
  check_soon(nccl_library().GroupEnd(), "ncclGroupEnd");
  cuda::tell_queued(stream_, cuda::Queued::library);
}

void NcclGroup::wait() {
  device_.make_current();
  cuda::tell_waits(stream_);
  for (Pauses pauses; !stream_.finished();) {
    check(asked(), "ncclCommGetAsyncError");
    look_around();
    pauses.pause();
  }
  // What fails on its way may look finished to the stream.
  check(asked(), "ncclCommGetAsyncError");
}

void NcclGroup::abort() noexcept {
  if (comm_ == nullptr) return;
  try {
    device_.make_current();
  } catch (const std::exception&) {
    // Where the device has failed NCCL is told nevertheless.
  }
  nccl_library().CommAbort(std::exchange(comm_, nullptr));
  try {
    const Clock::time_point deadline = Clock::now() + kLeave;
    for (Pauses pauses; !stream_.finished() && Clock::now() < deadline;) pauses.pause();
  } catch (const std::exception&) {
    // The device has failed, which somebody has been told by the call that failed first.
  }
}

void NcclGroup::leave() noexcept {
  if (comm_ == nullptr) return;
  try {
    const nccl::Calls& calls = nccl_library();
    device_.make_current();
    nccl::Result result = calls.CommFinalize(comm_);
    const Clock::time_point deadline = Clock::now() + kLeave;
    for (Pauses pauses; result == nccl::kInProgress && Clock::now() < deadline;) {
      pauses.pause();
      if (calls.CommGetAsyncError(comm_, &result) != nccl::kSuccess) break;
    }
    if (result != nccl::kSuccess) return abort();
    if (calls.CommDestroy(comm_) == nccl::kSuccess) {
      comm_ = nullptr;
      return;
    }
  } catch (const std::exception&) {
  }
  abort();
}

void NcclGroup::check(nccl::Result result, const char* call) const {
  if (result == nccl::kSuccess || result == nccl::kInProgress) return;
  const std::string sentence =
      fmt::format("rank {} of group {} called {} in {} on device {}, and NCCL failed: {}", member_.rank, member_.group,
                  call, doing_, device_.ordinal(), nccl_words(result, comm_));
  // NCCL has lost a peer: a consequence of what happened there.
  if (result == nccl::kRemoteError) throw PeerLostError(sentence);
  throw RunError(sentence);
}

// A communicator that does not block may answer "not yet". Nothing else may be asked of it, and its stream be given
// nothing, before it has answered.
void NcclGroup::check_soon(nccl::Result result, const char* call) {
  check(result, call);
  if (in_group_ || result != nccl::kInProgress) return;
  for (Pauses pauses; (result = asked()) == nccl::kInProgress;) {
    look_around();
    pauses.pause();
  }
  check(result, call);
}

// How the communicator is.
nccl::Result NcclGroup::asked() {
  nccl::Result state = nccl::kSuccess;
  check(nccl_library().CommGetAsyncError(comm_, &state), "ncclCommGetAsyncError");
  return state;
}

// In the middle of a wait: is there still something to wait for?
void NcclGroup::look_around() {
  const Clock::time_point now = Clock::now();
  if (now >= next_look_) {
    next_look_ = now + kLookAtPeers;
    try {
      peers_are_there_();
    } catch (const PeerLostError&) {
      throw PeerLostError(fmt::format(
          "rank {} of group {} was in {} over NCCL on device {} when another rank of the group died or left",
          member_.rank, member_.group, doing_, device_.ordinal()));
    }
  }
  if (now >= deadline_)
    throw TimeoutError(fmt::format(
        "rank {} of group {} waited {} ms in {} over NCCL on device {} for the other ranks, one of which has stopped, "
        "makes other calls, or needs a longer timeout",
        member_.rank, member_.group, timeout_.count(), doing_, device_.ordinal()));
}

}  // namespace muonwalk::sim
