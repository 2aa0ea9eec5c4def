#include "sim/transport/nccl_device.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "sim/transport/nccl/nccl_group.hpp"
#include "src/cuda/newton_schulz_cuda.hpp"
#include "src/errors.hpp"

namespace muonwalk::sim {
namespace {

using std::chrono::milliseconds;

// How long the library may take to answer when it is asked whether it bears two ranks on one GPU.
constexpr milliseconds kAnswer{20000};

// Does NCCL bear two ranks of a group on GPU 0? Two threads try.
bool bears_two_on_one(const cuda::Device& device) {
  nccl::UniqueId id;
  if (nccl_library().GetUniqueId(&id) != nccl::kSuccess) return false;
  bool joined[2] = {};
  const auto join = [&](int rank) {
    try {
      NcclGroup group({"two on one GPU", rank, 2}, device, id, kAnswer, [] {});
      joined[rank] = true;
      group.leave();
    } catch (const std::exception&) {
      // It does not.
    }
  };
  std::thread other(join, 1);
  join(0);
  other.join();
  return joined[0] && joined[1];
}

// What is wrong with `ranks` ranks over NCCL; empty when nothing is.
std::string complaint_about(int ranks, bool launched) {
  try {
    const int gpus = cuda::Device::count();
    const cuda::Device first(0);
    nccl_library();
    if (ranks <= gpus || (launched && gpus == 1) || bears_two_on_one(first)) return "";
    return fmt::format(
        "--transport nccl with {} ranks needs as many GPUs, because NCCL bears no two ranks on one, and this machine "
        "shows {}; ask for at most {} rank{} (--dp, --tp, --pp), or use --transport gloo",
        ranks, gpus, gpus, gpus == 1 ? "" : "s");
  } catch (const std::exception& error) {
    return fmt::format("--transport nccl can't be used here: {}", error.what());
  }
}

std::string text_from(int file) {
  std::string text;
  char part[512];
  for (;;) {
    const ssize_t got = read(file, part, sizeof(part));
    if (got > 0) text.append(part, static_cast<std::size_t>(got));
    if (got == 0 || (got < 0 && errno != EINTR)) return text;
  }
}

// A process that waited for its child loses the child's status when something else has waited for it.
bool ended_well(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return true;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

constexpr const char* kAsked = "asked";

}  // namespace

void require_nccl(int ranks, bool launched) {
  int ends[2];
  if (pipe(ends) != 0)
    throw RunError(
        fmt::format("no pipe to a child that asks for a GPU could be opened: {}; allow more open files (ulimit -n)",
                    std::strerror(errno)));
  std::fflush(nullptr);  // or the child would hold a copy of what is not written yet
  const pid_t child = fork();
  if (child < 0) {
    close(ends[0]);
    close(ends[1]);
    throw RunError("the system allows no further process, not even one that asks for a GPU; allow more (ulimit -u)");
  }
  if (child == 0) {
    close(ends[0]);
    const std::string answer = kAsked + complaint_about(ranks, launched);
    const ssize_t written = write(ends[1], answer.data(), answer.size());
    _exit(written == static_cast<ssize_t>(answer.size()) ? 0 : 3);
  }
  close(ends[1]);
  const std::string answer = text_from(ends[0]);
  close(ends[0]);
  const bool well = ended_well(child);
  if (!well || answer.rfind(kAsked, 0) != 0)
    throw UsageError(
        "--transport nccl can't be used here: a process that only asked CUDA and NCCL for the GPUs did not survive it; "
        "see that nvidia-smi works, or use --transport gloo");
  const std::string complaint = answer.substr(std::strlen(kAsked));
  if (!complaint.empty()) throw UsageError(complaint);
}

struct NcclDevice::State {
  cuda::Kernels kernels;
};

NcclDevice::NcclDevice(int local_rank, const std::string& holder) {
  const int gpus = cuda::Device::count();
  state_ = std::make_shared<State>(State{cuda::Kernels(cuda::Device(gpus > 0 ? local_rank % gpus : 0, holder))});
}

NcclDevice::~NcclDevice() = default;

int NcclDevice::ordinal() const { return state_->kernels.device().ordinal(); }

ChainEngine NcclDevice::chain_engine() const { return cuda::chain_engine(state_->kernels.device()); }

std::unique_ptr<Backend> NcclDevice::connect(const std::string& name, int rank, int size, KeyStore& store,
                                             std::unique_ptr<Backend> beneath, milliseconds timeout) {
  if (size < 1 || rank < 0 || rank >= size)
    throw std::invalid_argument(fmt::format(
        "rank {} of {} was to be connected in group {}, but ranks go from 0 to size − 1", rank, size, name));
  const NcclGroup::Member member{name, rank, size};
  const cuda::Kernels& kernels = state_->kernels;
  const cuda::Device device = kernels.device();
  if (size == 1) return over_nccl(member, kernels, std::move(beneath), nullptr);

  const std::string key = "nccl " + name;
  nccl::UniqueId id;
  if (rank == 0) {
    device.make_current();
    const nccl::Result result = nccl_library().GetUniqueId(&id);
    if (result != nccl::kSuccess)
      throw RunError(
          fmt::format("rank {} of group {} called ncclGetUniqueId in the rendezvous on device {}, and NCCL failed: {}",
                      rank, name, device.ordinal(), nccl_words(result, nullptr)));
    store.set(key, std::vector<char>(id.bytes, id.bytes + sizeof(id.bytes)));
  } else {
    const std::vector<char> written = store.get(key, timeout);
    if (written.size() != sizeof(id.bytes))
      throw RunError(fmt::format("rank {} of group {} found {} bytes under \"{}\" on the board, where NCCL's id has {}",
                                 rank, name, written.size(), key, sizeof(id.bytes)));
    std::memcpy(id.bytes, written.data(), sizeof(id.bytes));
  }
  Backend* const peers = beneath.get();  // it outlives the group
  auto group = std::make_unique<NcclGroup>(member, device, id, timeout, [peers] { peers->kernel_bytes_sent(); });
  return over_nccl(member, kernels, std::move(beneath), std::move(group));
}

}  // namespace muonwalk::sim
