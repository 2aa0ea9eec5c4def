// How fast ranks talk, each number beside one that was measured in the same run or beside its target:
//   - a barrier, a small and a large all-gather of processes over TCP on the loopback interface, and of fibers,
//   - a turn of a fiber, and the start and end of many,
//   - how long ranks with three groups each take to start, connect and end.
// Nothing here fails on a time.
//
// "bench_collectives --trace FILE" does the same calls instead, once each, as a run that is traced: on as many ranks
// and in such a world as the options of a lesson say.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "sim/classroom/lesson.hpp"
#include "sim/fibers/fibers.hpp"
#include "sim/transport/gloo_device.hpp"
#include "tests/comm/rank_runners.hpp"

using namespace muonwalk;
using namespace muonwalk::testing;

namespace {

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0.0 : values[values.size() / 2];
}

// Every rank takes part in `call` several times; the median of what rank 0 saw, each begun after a barrier.
double median_ms(Communicator& c, int repetitions, const std::function<void()>& call) {
  std::vector<double> times;
  for (int i = 0; i < repetitions; ++i) {
    c.barrier();
    const double start = now_ms();
    call();
    c.barrier();
    times.push_back(now_ms() - start);
  }
  return median(times);
}

constexpr int ranks = 8;
constexpr Index total_elements = Index{64} << 18;  // 64 MiB of float32

struct Latencies {
  double barrier = 0;
  double gather_4k = 0;
  double gather_64m = 0;
};

Latencies measure(Communicator& c) {
  const Index shard_elements = total_elements / c.size();
  Latencies result;
  std::vector<float> shard(static_cast<std::size_t>(shard_elements), 1.0f);
  std::vector<float> out(static_cast<std::size_t>(total_elements), 0.0f);
  std::vector<double> barriers;
  for (int i = 0; i < 200; ++i) {
    const double start = now_ms();
    c.barrier();
    barriers.push_back(now_ms() - start);
  }
  result.barrier = median(barriers);
  std::vector<double> small;
  for (int i = 0; i < 200; ++i) {
    const double start = now_ms();
    c.all_gather(shard.data(), Index{1024}, out.data());
    small.push_back(now_ms() - start);
  }
  result.gather_4k = median(small);
  result.gather_64m = median_ms(c, 9, [&] { c.all_gather(shard.data(), shard_elements, out.data()); });
  return result;
}

void print_latencies(const char* world, const Latencies& l) {
  std::printf("  %-22s barrier %7.3f ms   all_gather of 4 KiB per rank %7.3f ms   of 64 MiB in total %7.1f ms\n", world,
              l.barrier, l.gather_4k, l.gather_64m);
}

// Fibers: what a turn costs (a switch to the scheduler and one to the next), and what it takes to make so many and end
// them.
void bench_fibers(int fibers) {
  constexpr int kTurns = 2000000;
  std::vector<double> starts, turns;
  for (int i = 0; i < 5; ++i) {
    double start = now_ms();
    sim::run_fibers(fibers, [](int) {}, {});
    starts.push_back(now_ms() - start);
    start = now_ms();
    sim::run_fibers(fibers,
                    [&](int me) {
                      for (int turn = 0; turn < kTurns / fibers; ++turn) {
                        sim::fiber::wake((me + 1) % fibers);
                        sim::fiber::wait();
                      }
                      sim::fiber::wake((me + 1) % fibers);
                    },
                    {});
    turns.push_back((now_ms() - start - starts.back()) * 1e6 / kTurns);
  }
  std::printf("%4d fibers: a turn %6.1f ns (target 100), start and end of all %6.2f ms (target of 1,024: 20)\n", fibers,
              median(turns), median(starts));
}

void print_gathers(int fibers) {
  Latencies latencies;
  on_fibers(fibers, [&](Communicator& c) -> std::string {
    const Latencies here = measure(c);
    if (c.rank() == 0) latencies = here;
    return "";
  });
  print_latencies((std::to_string(fibers) + " fibers, memory").c_str(), latencies);
}

void bench_processes(int size) {
  sim::KeyStore board(sim::GlooDevice::board_keys(size) + 1,
                      std::max(sim::GlooDevice::board_value_bytes(size), sizeof(Latencies)));
  const auto ends = on_processes(size, [&](int rank) {
    return as_gloo_rank(rank, size, board, [&](Communicator& c) -> std::string {
      const Latencies latencies = measure(c);
      const char* bytes = reinterpret_cast<const char*>(&latencies);
      if (rank == 0) board.set("latencies", std::vector<char>(bytes, bytes + sizeof(latencies)));
      c.barrier();
      return "";
    });
  });
  const std::string trouble = joined(ends);
  if (!trouble.empty()) {
    std::printf("  %d processes over TCP: %s", size, trouble.c_str());
    return;
  }
  Latencies latencies;
  std::memcpy(&latencies, board.get("latencies", patient).data(), sizeof(latencies));
  print_latencies((std::to_string(size) + " processes, TCP").c_str(), latencies);
}

// From before the first fork until the last child is gone. A rank connects its three groups, does a barrier in each,
// ends.
void bench_start(int dp, int tp, int pp, double target_ms) {
  const int size = dp * tp * pp;
  sim::KeyStore board(3 * sim::GlooDevice::board_keys(size),
                      sim::GlooDevice::board_value_bytes(std::max({dp, tp, pp})));
  const double start = now_ms();
  const auto ends = on_processes(size, [&](int rank) -> std::string {
    sim::GlooDevice device;
    const int t = rank % tp, d = rank / tp % dp, p = rank / (tp * dp);
    const auto join = [&](const char* kind, int group, int number, int members) {
      const std::string name = std::string(kind) + " " + std::to_string(group);
      auto backend = device.connect(name, number, members, board, patient);
      Ledger ledger;
      Communicator(name, number, members, *backend, ledger).barrier();
      return backend;
    };
    const auto tps = join("tp", p * dp + d, t, tp);
    const auto dps = join("dp", p * tp + t, d, dp);
    const auto pps = join("pp", d * tp + t, p, pp);
    _exit(0);  // as a rank of a lesson does: taking the contexts down would cost 10 ms a peer
  });
  const double took = now_ms() - start;
  const std::string trouble = joined(ends);
  std::printf("start, connect and end %2d processes in dp %d × tp %d × pp %d: %6.0f ms (target %.0f) %s\n", size, dp,
              tp, pp, took, target_ms, trouble.c_str());
}

// What a traced rank holds.
struct Buffers {
  std::vector<float> shard, out;
};

int trace_calls(int argc, char** argv) {
  sim::LessonInfo info;
  info.name = "bench_collectives";
  info.title = "Collectives, one call each";
  info.question = "how long does each of these calls take a rank?";
  sim::Lesson<Buffers> run(info, Grid().dp(ranks), argc, argv);
  run.quiet_step("make the buffers", [](sim::Rank& rank, Buffers& buffers) {
    buffers.shard.assign(static_cast<std::size_t>(total_elements / rank.dp().size()), 1.0f);
    buffers.out.assign(buffers.shard.size() * static_cast<std::size_t>(rank.dp().size()), 0.0f);
  });
  run.quiet_step("barrier", [](sim::Rank& rank, Buffers&) { rank.dp().barrier(); });
  run.quiet_step("all_gather of 4 KiB per rank", [](sim::Rank& rank, Buffers& buffers) {
    rank.dp().all_gather(buffers.shard.data(), Index{1024}, buffers.out.data());
  });
  run.quiet_step("all_gather of 64 MiB", [](sim::Rank& rank, Buffers& buffers) {
    rank.dp().all_gather(buffers.shard.data(), static_cast<Index>(buffers.shard.size()), buffers.out.data());
  });
  return run.answer("as long as its slices in the trace are wide; muonwalk-trace summary adds them up.");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) return trace_calls(argc, argv);
  bench_start(4, 2, 1, 500);
  bench_start(2, 2, 2, 500);
  bench_start(4, 4, 4, 5000);
  for (const int size : {2, 4, 8}) bench_processes(size);
  print_gathers(ranks);
  for (const int fibers : {8, 64, 1024}) bench_fibers(fibers);
  return 0;
}
