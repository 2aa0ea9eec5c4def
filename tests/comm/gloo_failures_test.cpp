// Connections over Gloo when ranks die, stop or leave, and when a stranger comes: who is told what, and when.

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

#include "sim/transport/secret.hpp"
#include "src/errors.hpp"
#include "tests/comm/rank_runners.hpp"

using namespace muonwalk;
using namespace muonwalk::testing;
using std::chrono::milliseconds;

TEST_CASE("a process that has the addresses and not the secret is turned away, and no rank is blamed") {
  sim::KeyStore store(sim::GlooDevice::board_keys(3), sim::GlooDevice::board_value_bytes(3));
  const auto run = [&](int rank) {
    sim::GlooDevice device;
    const sim::Secret guess = sim::random_bytes();
    return error_of([&] { device.connect("gloo", rank, 3, store, patient, rank == 1 ? &guess : nullptr); });
  };
  const std::vector<ChildEnd> ends = on_processes(3, run);
  for (int rank = 0; rank < 3; ++rank) {
    // Rank 1 sees it the other way round: nobody else knows its secret, and rank 0 is the first that it asks.
    CHECK(ends[static_cast<std::size_t>(rank)].complaint ==
          fmt::format(
              "a process that is not a rank of this run, and does not know its secret, is connected to rank {} of "
              "group gloo in place of rank {}, the last of 8 times that the ranks tried to connect; nothing of the "
              "run was sent to it; end that process, or run where ranks get a network of their own",
              rank, rank == 1 ? 0 : 1));
  }
}

TEST_CASE("a rank that is killed in the middle of a message: its peer is told long before the timeout") {
  const Index count = 20000000;
  const std::string delivered = "no error";  // the whole message had come by then, so it was not the middle
  for (const bool sends : {true, false}) {
    CAPTURE(sends);
    std::string complaint = delivered;
    for (int attempt = 0; attempt < 10 && complaint == delivered; ++attempt) {
      sim::KeyStore store(sim::GlooDevice::board_keys(2), sim::GlooDevice::board_value_bytes(2));
      SharedCounter begun;
      const auto run = [&](int rank) {
        return as_gloo_rank(rank, 2, store, [&](Communicator& c) -> std::string {
          Flat memory(static_cast<std::size_t>(count), 1.0f);
          const bool sender = (rank == 1) == sends;
          if (rank == 1) {
            const Transfer transfer = sender ? c.isend(memory.data(), count, 0) : c.irecv(memory.data(), count, 0);
            begun.add();
            begun.wait_for(2);
            kill(getpid(), SIGKILL);
          }
          const std::string error = error_of([&] {
            Transfer transfer = sender ? c.isend(memory.data(), count, 1) : c.irecv(memory.data(), count, 1);
            begun.add();
            transfer.wait();
          });
          if (error.empty()) return delivered;
          return error.find("the rank has died or left") == std::string::npos ? "error: " + error : "";
        });
      };
      complaint = on_processes(2, run)[0].complaint;
    }
    CHECK(complaint == "");
  }
}

TEST_CASE("a stopped rank: its peers get an error that names it and the timeout") {
  sim::KeyStore store(sim::GlooDevice::board_keys(2), sim::GlooDevice::board_value_bytes(2));
  SharedCounter done;
  const auto run = [&](int rank) {
    return as_gloo_rank(
        rank, 2, store,
        [&](Communicator& c) -> std::string {
          c.barrier();
          if (rank == 1) {
            done.wait_for(1);
            return "";
          }
          const std::string error = error_of([&] { c.all_gather(values(5)); });
          done.add();
          return error == "rank 0 waited 300 ms in all_gather for rank 1 of group gloo, which has stopped, makes other "
                          "calls, or needs a longer timeout"
                     ? ""
                     : "error: " + error;
        },
        milliseconds(300));
  };
  CHECK(joined(on_processes(2, run)) == "");
}
