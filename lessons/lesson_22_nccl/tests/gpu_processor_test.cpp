#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "lessons/lesson_22_nccl/tables.hpp"
#include "sim/transport/memory_backend.hpp"
#include "src/cuda/device.hpp"
#include "src/cuda/newton_schulz_cuda.hpp"
#include "src/errors.hpp"
#include "src/numerics/philox.hpp"
#include "src/optim/full_step.hpp"
#include "src/train/models.hpp"
#include "tests/cuda/stand_in.hpp"
#include "tests/nccl/nccl_ranks.hpp"
#include "tests/ranks/run_program.hpp"

// GPUs are the stand-in's: device memory that the host can't touch, and the kernels' own source.

using namespace muonwalk;
using namespace muonwalk::sim;
using namespace muonwalk::testing;

namespace {

Flat numbers(Index count, std::uint64_t tensor) {
  Flat values(static_cast<std::size_t>(count));
  random_values({7, tensor}, 0, count, values.data());
  return values;
}

// All that a rank's processor does, on numbers of one shape; what comes out.
std::vector<Flat> all_work(Processor& processor, Shape shape, const MuonSettings& settings) {
  const Index size = shape.size();
  const Array gradient = processor.from_host(numbers(size, 1)), buffer = processor.from_host(numbers(size, 2));
  const Array update = processor.array(size), turned = processor.array(size),
              weights = processor.from_host(numbers(size, 3));
  processor.momentum(gradient.data(), buffer.data(), size, settings, update.data());
  {
    const ArrayOf<bfloat16> narrow = processor.array_of_bf16(size);
    processor.to_bf16(update.data(), size, narrow.data());
    processor.from_bf16(narrow.data(), size, turned.data());  // queued, and what it reads goes here
  }
  // The left half of the columns of one to the right half of the other.
  const Index half = shape.cols / 2;
  processor.copy_rows(turned.data() + shape.cols - half, shape.cols, update.data(), shape.cols, shape.rows, half);
  processor.orthogonalize(update.data(), shape, settings, "x");
  processor.apply(weights.data(), update.data(), size, shape, settings);
  const Array zeros = processor.from_host(numbers(size, 4));
  processor.set_to_zero(zeros);
  std::vector<Flat> results;
  for (const Array* array : {&buffer, &update, &turned, &weights, &zeros}) results.push_back(processor.on_host(*array));
  return results;
}

}  // namespace

TEST_CASE("a GPU has the host's bits in all that a rank computes, and counts as many elements as held") {
  for (const Precision precision : {Precision::fp32, Precision::bf16})
    for (const Shape shape : {Shape{5, 12}, Shape{12, 5}, Shape{16, 16}, Shape{70, 33}}) {
      const MuonSettings settings = muon_settings(precision, 1, Products::chain);
      std::vector<std::vector<Flat>> results;
      std::vector<std::int64_t> peaks, left;
      for (const bool on_gpu : {false, true}) {
        MemoryMeter meter;
        const MeterScope scope(meter);
        const std::unique_ptr<Processor> processor = processor_of(on_gpu ? std::optional<int>(3) : std::nullopt);
        const std::vector<Flat> of_rank = all_work(*processor, shape, settings);
        peaks.push_back(meter.peak());
        left.push_back(meter.live());
        MemoryMeter of_test;
        const MeterScope aside(of_test);
        results.push_back(of_rank);
      }
      CHECK(peaks[0] == peaks[1]);
      CHECK(left[0] == left[1]);
      for (std::size_t i = 0; i < results[0].size(); ++i) CHECK(same_bits(results[0][i], results[1][i]));
    }
}

TEST_CASE("in whose memory an address lies is the driver's word") {
  const std::unique_ptr<Processor> gpu = gpu_processor(5);
  const Array array = gpu->array(100);
  const Flat host(10);
  CHECK(gpu->memory_of(array.data()) == "the memory of GPU 5");
  CHECK(gpu->memory_of(array.data() + 99) == "the memory of GPU 5");
  CHECK(gpu->memory_of(host.data()) == "the host's memory");
  CHECK(gpu->memory_of(gpu_processor(2)->array(1).data()) == "the memory of GPU 2");
  CHECK(gpu->name() == "GPU 5");
  CHECK_THROWS_AS(gpu_processor(8), UsageError);
}

TEST_CASE("memory of an array that goes is given back when its queue is done, and never while it may be used") {
  const auto before = muonwalk_stand_in_live_bytes();
  {
    const std::unique_ptr<Processor> gpu = gpu_processor(0);
    const auto empty = muonwalk_stand_in_live_bytes();
    Array array = gpu->array(1000);
    gpu->set_to_zero(array);
    array = Array();
    CHECK(muonwalk_stand_in_live_bytes() >= empty + 4000);
    gpu->wait();
    CHECK(muonwalk_stand_in_live_bytes() == empty);
    gpu->set_to_zero(gpu->array(1000));  // and at the end nobody waits
  }
  CHECK(muonwalk_stand_in_live_bytes() == before);
}

TEST_CASE("who watches is told of each copy with its direction, of kernels, waits, and of no other thread's") {
  const std::unique_ptr<Processor> gpu = gpu_processor(0), other = gpu_processor(0);
  const Flat values = numbers(64, 1);
  Array array;
  gpu->watch("up", [&] { array = gpu->from_host(values); });
  gpu->watch("within", [&] {
    const Array copy = gpu->array(64);
    gpu->copy(copy.data(), array.data(), 64);
    gpu->copy_rows(copy.data(), 8, array.data(), 16, 4, 8);
    gpu->set_to_zero(copy);
    std::thread([&] { other->from_host(values); }).join();
  });
  gpu->watch("down", [&] { gpu->on_host(array); });
  gpu->watch("kernel", [&] {
    gpu->apply(array.data(), array.data(), 64, {8, 8}, MuonSettings());
    other->watch("inner", [&] { other->apply(array.data(), array.data(), 64, {8, 8}, MuonSettings()); });
  });
  gpu->on_host(array);  // nobody watches
  const std::vector<PhaseWork>& noted = gpu->noted();
  REQUIRE(noted.size() == 4);
  const auto is = [](const PhaseWork& work, Index kernels, Index copies, Index waits, Index up, Index down) {
    CAPTURE(work.phase);
    CHECK(work.kernels == kernels);
    CHECK(work.copies == copies);
    CHECK(work.host_waits == waits);
    CHECK(work.to_device == up);
    CHECK(work.to_host == down);
    CHECK((work.queues == std::vector<std::string>{"mine"}));
  };
  is(noted[0], 0, 1, 1, 256, 0);
  is(noted[1], 0, 3, 0, 0, 0);
  is(noted[2], 0, 1, 1, 0, 256);
  is(noted[3], 1, 0, 0, 0, 0);
  REQUIRE(other->noted().size() == 1);
  CHECK(other->noted()[0].kernels == 1);
}

namespace {

// Adds up all that one thread queues.
struct Total : cuda::QueueObserver {
  Crossed crossed;
  void queued(const cuda::Stream&, cuda::Queued what, Index bytes) override {
    if (what == cuda::Queued::copy_to_device) crossed.to_device += bytes;
    if (what == cuda::Queued::copy_to_host) crossed.to_host += bytes;
  }
  void waits(const cuda::Stream&) override {}
};

// What the lesson's table says of a step whose arrays lie on the host.
Crossed staged(const Plan& plan, Precision precision) {
  const Index norms = precision == Precision::bf16 ? 16 : 8;
  Crossed sum;
  for (const Operation& operation : plan.operations) {
    const Work* work = std::get_if<Work>(&operation);
    const Call* call = std::get_if<Call>(&operation);
    const bool matrix = work != nullptr && work->phase == phases::orthogonalize;
    sum.to_device += matrix ? 4 * work->shape.size() : call ? call->elements_in * Index{element_size(call->type)} : 0;
    sum.to_host += matrix ? 4 * work->shape.size() + norms
                   : call ? call->elements_out * Index{element_size(call->type)}
                          : 0;
  }
  return sum;
}

}  // namespace

TEST_CASE("where arrays lie on the host, a step over NCCL moves between host and GPU what the table says it does") {
  for (const Precision precision : {Precision::fp32, Precision::bf16})
    for (const int dp : {1, 2, 3}) {
      const Grid grid = Grid().dp(dp);
      const MuonSettings settings = muon_settings(precision, 1, Products::chain);
      const Layout layout = plan_layout(small_parameters(), grid);
      const auto step = [&](Communicator& group) -> std::string {
        MemoryGroup alone(1, "tp");
        const std::unique_ptr<Backend> of_one = alone.backend(0);
        Ledger ledger;
        Communicator tp("tp", 0, 1, *of_one, ledger);
        const Place place = grid.place(group.rank());
        MuonState state{zero_buckets(layout), zero_shards(layout, place.dp)};
        Buckets gradients = zero_buckets(layout);
        for (Flat& bucket : gradients[0]) bucket = numbers(static_cast<Index>(bucket.size()), 9);
        const ChainEngine engine = cuda::chain_engine(cuda::Device(group.rank()));
        const ChainEngineScope on_gpu(engine);
        Total total_of_rank;
        const cuda::QueueObserverScope scope(total_of_rank);
        full_step({layout, place, group, tp, nullptr}, settings, gradients, state);
        const Crossed wanted = staged(muon_plan(layout, place, settings), precision);
        const Crossed& found = total_of_rank.crossed;
        if (found.to_device == wanted.to_device && found.to_host == wanted.to_host) return "";
        return "predicted " + std::to_string(wanted.to_device) + " and " + std::to_string(wanted.to_host) +
               ", counted " + std::to_string(found.to_device) + " and " + std::to_string(found.to_host);
      };
      for (const std::string& complaint : on_nccl_threads(dp, step)) CHECK(complaint == "");
    }
}

TEST_CASE(
    "lesson 22 over NCCL: every planted bug is caught, Eigen's products are refused, and what breaks has a sentence") {
  const auto run = [](std::vector<std::string> options, const std::string& failure = "") {
    std::vector<std::string> command = {LESSON, "--transport", "nccl"};
    command.insert(command.end(), options.begin(), options.end());
    return run_program(command, 60, [&] {
      if (!failure.empty()) setenv("MUONWALK_STAND_IN_FAIL", failure.c_str(), 1);
    });
  };
  for (const char* bug : {"early_reuse", "early_gather", "slice_pitch"}) {
    const Outcome caught = run({"--bug", bug});
    CAPTURE(bug);
    CHECK(caught.exit_code == 1);
    CHECK(caught.out.find("first difference") != std::string::npos);
  }
  const Outcome eigen = run({"--products", "eigen"});
  CHECK(eigen.exit_code == 2);
  CHECK(eigen.err.find("--products eigen") != std::string::npos);
  CHECK(eigen.out == "");
  for (const char* failure : {"cuMemAlloc:6", "cuMemcpyAsync:3", "cuMemcpy2DAsync:1", "cuLaunchKernel:5"}) {
    const Outcome broken = run({}, std::string(failure) + ":CUDA_ERROR_UNKNOWN");
    CAPTURE(failure);
    CAPTURE(broken.err);
    CHECK(broken.exit_code == 3);
    CHECK(broken.err.find("CUDA_ERROR_UNKNOWN") != std::string::npos);
  }
}
