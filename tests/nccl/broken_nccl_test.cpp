#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "src/cuda/cuda_library.hpp"
#include "src/errors.hpp"
#include "tests/cuda/stand_in.hpp"
#include "tests/nccl/nccl_ranks.hpp"
#include "tests/nccl/stand_in_nccl.hpp"

// What breaks under ranks that talk over NCCL. They are processes; this one never touches CUDA, or they could not.

using namespace muonwalk;
using namespace muonwalk::testing;
using std::chrono::milliseconds;

namespace {

constexpr int kRanks = 3;

// Every kind of call, three times.
void call_everything(Communicator& c) {
  for (int round = 0; round < 3; ++round) {
    Flat whole(static_cast<std::size_t>(4 * c.size()), 1.0f);
    c.all_gather(Flat(5, 1.0f));
    c.all_reduce(whole);
    c.reduce_scatter(whole);
    c.broadcast(whole.data(), 4, 1);
    std::vector<Index> counts(static_cast<std::size_t>(c.size()), 2);
    counts[0] = 3;
    Flat gathered(static_cast<std::size_t>(2 * c.size() + 1));
    c.all_gather_v(whole.data(), counts, gathered.data());
    c.barrier();
  }
}

struct Breakage {
  std::string variable;  // of the environment, on rank 1 alone
  std::string value;
  std::vector<std::string> words;  // what rank 1's sentence holds
};

// What a rank says when all is over: nothing, when it went as it must.
std::string broken_rank(int rank, sim::KeyStore& board, const Breakage& breakage, SharedCounter& broken) {
  const bool faulty = rank == 1;
  if (faulty) setenv(breakage.variable.c_str(), breakage.value.c_str(), 1);
  std::string error;
  try {
    as_nccl_rank(
        rank, kRanks, board,
        [](Communicator& c) -> std::string {
          call_everything(c);
          return "";
        },
        milliseconds(20000));
  } catch (const std::exception& caught) {
    error = caught.what();
  }
  unsetenv(breakage.variable.c_str());
  if (error.empty()) return "no error";
  broken.add();
  if (error.find("waited 20000 ms") != std::string::npos) return "it waited for its timeout: " + error;
  if (faulty)
    for (const std::string& words : breakage.words)
      if (error.find(words) == std::string::npos) return "no \"" + words + "\" in: " + error;
  if (error.find('\n') != std::string::npos || error.back() == '.') return "not a sentence: " + error;
  muonwalk_stand_in_fail("");
  if (open_groups() != 0) return "a group of calls was left open, in which later ones of this thread would wait";
  if (live_communicators() != 0) return "a communicator leaked";
  if (muonwalk_stand_in_live_bytes() != 0) return "memory of the device leaked";
  if (muonwalk_stand_in_live_objects() != 0) return "a stream or a context leaked";
  return "";
}

}  // namespace

TEST_CASE("NCCL fails: a sentence with rank, device, call and NCCL's words; the peers end at once; nothing leaks") {
  const std::string nccl = "MUONWALK_STAND_IN_NCCL_FAIL", cuda = "MUONWALK_STAND_IN_FAIL";
  const auto failed = [](const std::string& call, const std::string& in) -> std::vector<std::string> {
    return {"rank 1 of group memory called " + call + " in " + in + " on device 1, and NCCL failed: ",
            "fails on purpose"};
  };
  const std::vector<Breakage> all = {
      {nccl, "ncclCommInitRankConfig:1", failed("ncclCommInitRankConfig", "the rendezvous")},
      {nccl, "ncclCommGetAsyncError:1", failed("ncclCommGetAsyncError", "the rendezvous")},
      {nccl, "ncclCommGetAsyncError:9", {"rank 1 of group memory called ncclCommGetAsyncError in ", "on device 1"}},
      {nccl, "ncclAllGather:1", failed("ncclAllGather", "all_gather")},
      {nccl, "ncclGroupStart:1", failed("ncclGroupStart", "all_reduce")},
      {nccl, "ncclSend:2", failed("ncclSend", "all_reduce")},
      {nccl, "ncclRecv:6", failed("ncclRecv", "reduce_scatter")},
      {nccl, "ncclGroupEnd:3", failed("ncclGroupEnd", "reduce_scatter")},
      {nccl, "ncclBroadcast:2", failed("ncclBroadcast", "broadcast")},
      {nccl, "async:2", {"rank 1 of group memory called ", " in all_reduce on device 1", "a cable was pulled"}},
      {cuda, "cuMemAlloc:2:CUDA_ERROR_OUT_OF_MEMORY", {"rank 1: cuMemAlloc of ", "on device 1", "OUT_OF_MEMORY"}},
      {cuda, "cuMemcpyAsync:3:CUDA_ERROR_ILLEGAL_ADDRESS:later", {"rank 1: ", "device 1", "ILLEGAL_ADDRESS"}},
      {cuda, "cuLaunchKernel:1:CUDA_ERROR_LAUNCH_FAILED", {"rank 1: ", "device 1", "LAUNCH_FAILED"}}};
  for (const Breakage& breakage : all) {
    CAPTURE(breakage.value);
    const auto board = board_for_nccl(kRanks);
    SharedCounter broken;
    const auto run = [&](int rank) { return broken_rank(rank, *board, breakage, broken); };
    CHECK(joined(on_processes(kRanks, run, milliseconds(15000))) == "");
    CHECK(broken.value() == kRanks);
  }
}

TEST_CASE("a rank that dies in the middle of a call: its peers are told at once") {
  const auto board = board_for_nccl(kRanks);
  const auto run = [&](int rank) -> std::string {
    if (rank == 1) setenv("MUONWALK_STAND_IN_NCCL_FAIL", "die:2", 1);
    try {
      as_nccl_rank(rank, kRanks, *board, [](Communicator& c) -> std::string {
        call_everything(c);
        return "";
      });
    } catch (const PeerLostError& lost) {
      const std::string words = "over NCCL on device " + std::to_string(rank) + " when another rank of the group died";
      return std::string(lost.what()).find(words) != std::string::npos ? "" : lost.what();
    }
    return "no error";
  };
  const std::vector<ChildEnd> ends = on_processes(kRanks, run, milliseconds(15000));
  CHECK(ends[0].complaint == "");
  CHECK(ends[1].code == 9);
  CHECK(ends[2].complaint == "");
}

TEST_CASE("a call that is never done: a timeout that names rank, call and device, and the rank goes on") {
  const auto board = board_for_nccl(2);
  const auto run = [&](int rank) -> std::string {
    setenv("MUONWALK_STAND_IN_NCCL_FAIL", "hang:2", 1);
    std::string error;
    try {
      as_nccl_rank(
          rank, 2, *board,
          [](Communicator& c) -> std::string {
            try {
              call_everything(c);
            } catch (const RunError&) {
              if (live_communicators() != 0) throw std::logic_error("the call is under way, and has its memory still");
              throw;
            }
            return "";
          },
          milliseconds(300));
    } catch (const TimeoutError& timeout) {
      error = timeout.what();
      const std::string words = "rank " + std::to_string(rank) +
                                " of group memory waited 300 ms in reduce_scatter over NCCL on device " +
                                std::to_string(rank);
      if (error.find(words) != std::string::npos) error.clear();
    } catch (const PeerLostError&) {  // the other one was a little earlier
    }
    if (!error.empty()) return error;
    return live_communicators() == 0 && muonwalk_stand_in_live_bytes() == 0 ? "" : "something leaked";
  };
  CHECK(joined(on_processes(2, run, milliseconds(15000))) == "");
}

TEST_CASE("two ranks on one GPU: NCCL's own words on every rank") {
  const auto board = board_for_nccl(2);
  const auto run = [&](int rank) -> std::string {
    setenv("MUONWALK_STAND_IN_DEVICES", "1", 1);
    std::string error;
    try {
      as_nccl_rank(rank, 2, *board, [](Communicator& c) -> std::string {
        call_everything(c);
        return "";
      });
    } catch (const RunError& caught) {
      error = caught.what();
    }
    const std::string words = "rank " + std::to_string(rank) + " of group memory called ncclCommInitRankConfig in " +
                              "the rendezvous on device 0, and NCCL failed: invalid usage";
    if (error.find(words) == std::string::npos) return "it says: " + error;
    return error.find("Duplicate GPU detected") != std::string::npos && live_communicators() == 0 ? "" : error;
  };
  CHECK(joined(on_processes(2, run, milliseconds(15000))) == "");
}

TEST_CASE("leaving fails: the communicator is aborted instead, and nobody is told of an error") {
  for (const std::string fault : {"ncclCommFinalize:1", "ncclCommDestroy:1"}) {
    CAPTURE(fault);
    const auto board = board_for_nccl(2);
    const auto run = [&](int rank) -> std::string {
      setenv("MUONWALK_STAND_IN_NCCL_FAIL", fault.c_str(), 1);
      const std::string wrong = as_nccl_rank(rank, 2, *board, [](Communicator& c) -> std::string {
        call_everything(c);
        return "";
      });
      if (calls_of_nccl("ncclCommAbort") != 1) return "it was not aborted";
      return live_communicators() == 0 ? wrong : "a communicator leaked";
    };
    CHECK(joined(on_processes(2, run, milliseconds(15000))) == "");
  }
}

TEST_CASE("require_nccl: one sentence for everything that may be missing, asked in a child") {
  const auto says = [](const char* variable, const char* value, int ranks) -> std::string {
    const char* before = std::getenv(variable);
    const std::string kept = before != nullptr ? before : "";
    setenv(variable, value, 1);
    std::string sentence;
    try {
      sim::require_nccl(ranks);
    } catch (const UsageError& error) {
      sentence = error.what();
    }
    before != nullptr ? setenv(variable, kept.c_str(), 1) : unsetenv(variable);
    return sentence;
  };
  const auto holds = [](const std::string& sentence, const char* words) {
    CAPTURE(sentence);
    CAPTURE(words);
    CHECK(sentence.find("--transport nccl ") == 0);
    CHECK(sentence.find(words) != std::string::npos);
    CHECK(sentence.find('\n') == std::string::npos);
  };
  CHECK(says("MUONWALK_STAND_IN_DEVICES", "4", 4) == "");
  CHECK(says("MUONWALK_STAND_IN_DEVICES", "2", 4) ==
        "--transport nccl with 4 ranks needs as many GPUs, because NCCL bears no two ranks on one, and this machine "
        "shows 2; ask for at most 2 ranks (--dp, --tp, --pp), or use --transport gloo");
  setenv("MUONWALK_STAND_IN_DEVICES", "2", 1);
  CHECK(says("MUONWALK_STAND_IN_NCCL_SHARED_DEVICE", "1", 4) == "");
  holds(says("MUONWALK_STAND_IN_DEVICES", "0", 1), "CUDA_ERROR_NO_DEVICE");
  holds(says("MUONWALK_CUDA_LIBRARY", "/nowhere/libcuda.so.1", 1), "MUONWALK_CUDA_LIBRARY=");
  holds(says("MUONWALK_NCCL_LIBRARY", "/nowhere/libnccl.so.2", 1), "MUONWALK_NCCL_LIBRARY=");
  holds(says("MUONWALK_NCCL_LIBRARY", std::getenv("MUONWALK_CUDA_LIBRARY"), 1), "no function ncclGetVersion");
  holds(says("MUONWALK_STAND_IN_NCCL_VERSION", "21303", 1), "is 2.13");
  holds(says("MUONWALK_STAND_IN_NCCL_VERSION", "2708", 1), "is 2.7");
  holds(says("MUONWALK_STAND_IN_NCCL_FAIL", "ncclGetVersion:1", 1), "ncclGetVersion returns 3");
  setenv("MUONWALK_STAND_IN_DEVICES", "8", 1);
  CHECK_FALSE(cuda::cuda_library_is_open());  // or ranks that are forked now could not use it
}
