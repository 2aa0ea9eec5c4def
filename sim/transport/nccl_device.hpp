#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "sim/transport/key_store.hpp"
#include "src/comm/backend.hpp"
#include "src/numerics/newton_schulz.hpp"

namespace muonwalk::sim {

/// Throws UsageError, one sentence, where `ranks` ranks on this machine can't talk over NCCL: the program was built
/// without CUDA, there is no driver, GPU or NCCL library, or there are fewer GPUs than ranks and NCCL bears no two
/// ranks on one. A child that ends at once is asked, because CUDA does not outlive a fork, and whoever asks forks the
/// ranks next.
/// Processes that are `launched` may have been given a GPU each and see no other; then NCCL has the last word, when
/// they meet.
void require_nccl(int ranks, bool launched = false);

/// One rank's GPU, and NCCL on it.
class NcclDevice {
 public:
  /// Opens the GPU of the rank that is number `local_rank` on its machine: that number, modulo the GPUs. `holder`
  /// begins every error: "rank 3". Must not be called before the last fork. Throws UsageError where there is none.
  NcclDevice(int local_rank, const std::string& holder);
  ~NcclDevice();
  NcclDevice(const NcclDevice&) = delete;
  NcclDevice& operator=(const NcclDevice&) = delete;

  /// Joins a group of ranks. `beneath` connects the same ranks over Gloo: what they are about to call goes over it,
  /// before anything goes over NCCL, so that ranks that disagree get a sentence and don't hang, and a rank that is gone
  /// is missed at once. Messages of send and recv go over it as well: NCCL would match them in an order of its own, and
  /// whether a program works must not depend on that. `name` is unique among the groups of the run; NCCL's id for the
  /// group goes over `key store`, which takes one key of 128 bytes for it. Throws RunError, one sentence with rank,
  /// device and call, where NCCL fails, TimeoutError where a rank has not come after `timeout`, which is also the limit
  /// of every later call, and PeerLostError where one is gone. The backend keeps the device alive.
  ///
  /// The backend moves the messages of a collective together (Exchanger): NCCL moves the bytes, and a kernel of ours
  /// adds them as a tree (law 2). Memory may be the device's or the host's; the latter is copied to the device and
  /// back. Whatever still writes into device memory has to be waited for before the call; when it returns, all is done.
  /// What the system's kernel counts is not known, because NCCL's bytes pass it by.
  std::unique_ptr<Backend> connect(const std::string& name, int rank, int size, KeyStore& store,
                                   std::unique_ptr<Backend> beneath, std::chrono::milliseconds timeout);

  /// The number of the GPU among those that CUDA shows.
  int ordinal() const;

  /// What computes Newton–Schulz with chains on this GPU, with the processor's bits: for a ChainEngineScope.
  ChainEngine chain_engine() const;

  /// How many keys a group of `size` ranks writes to the key store.
  static std::size_t board_keys(int size) { return size > 1 ? 1 : 0; }

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace muonwalk::sim
