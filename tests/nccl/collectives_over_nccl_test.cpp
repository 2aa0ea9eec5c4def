#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/transport/nccl/nccl_library.hpp"
#include "src/cuda/device.hpp"
#include "src/errors.hpp"
#include "src/numerics/tree_sum.hpp"
#include "tests/comm/disagreements.hpp"
#include "tests/comm/random_calls.hpp"
#include "tests/cuda/stand_in.hpp"
#include "tests/nccl/nccl_ranks.hpp"
#include "tests/nccl/stand_in_nccl.hpp"

#if __has_include(<nccl.h>)
#include <nccl.h>
#endif

// The NCCL backend over the stand-ins for both libraries; ranks are threads, each with a device of its own.

using namespace muonwalk;
using namespace muonwalk::testing;

namespace {

void check_nothing_leaked() {
  CHECK(live_communicators() == 0);
  CHECK(muonwalk_stand_in_live_bytes() == 0);
  CHECK(muonwalk_stand_in_live_objects() == 0);
}

// What a rank's observers are told of, added up.
struct Witness : CallObserver {
  void moved(const Call&, const Message& message) override {
    (message.sent ? traffic.bytes_sent : traffic.bytes_received) += message.bytes;
    (message.sent ? traffic.messages_sent : traffic.messages_received) += 1;
  }
  Traffic traffic;
};

}  // namespace

TEST_CASE(
    "collectives over NCCL: every kind, element type and world size equals the naive reference, in host memory and in "
    "device memory, and ledger and observers have the bytes that are predicted for messages") {
  for (const int size : {1, 2, 3, 4, 5, 8}) {
    for (const bool on_device : {false, true}) {
      RandomCalls calls;
      calls.seed = std::uint64_t(100 * size + (on_device ? 1 : 0));
      calls.calls = size > 4 ? 25 : 60;
      calls.largest = size % 2 ? 40 : 3000;
      const auto run = [&](Communicator& c) -> std::string {
        Witness witness;
        c.observe(witness);
        const std::string wrong = make_random_calls(c, calls);
        if (!wrong.empty()) return wrong;
        return witness.traffic == c.ledger().total() ? "" : "the observer was told of other messages than the ledger";
      };
      CAPTURE(size);
      CAPTURE(on_device);
      const Wrapper wrapper = on_device ? Wrapper(with_device_pointers) : nullptr;
      CHECK(joined(on_nccl_threads(size, run, patient, wrapper)) == "");
    }
  }
  CHECK(calls_of_nccl("ncclAllGather") > 0);
  CHECK(calls_of_nccl("ncclBroadcast") > 0);
  CHECK(calls_of_nccl("ncclSend") > 0);
  CHECK(calls_of_nccl("ncclSend") == calls_of_nccl("ncclRecv"));
  check_nothing_leaked();
}

TEST_CASE("NCCL adds up where there is one order alone: between two ranks, equal pieces of floats in device memory") {
  const auto calls_for = [](int size, bool on_device, Index more) {
    const auto run = [&](Communicator& c) -> std::string {
      std::vector<Index> counts(static_cast<std::size_t>(c.size()), 300);
      counts.back() += more;
      const Index own = counts[static_cast<std::size_t>(c.rank())], all = 300 * c.size() + more;
      const auto value = [](int rank, Index i) { return static_cast<float>(i) / 3 + static_cast<float>(rank) * 1e5f; };
      Flat in, out(static_cast<std::size_t>(own));
      for (Index i = 0; i < all; ++i) in.push_back(value(c.rank(), i));
      const cuda::Device device(c.rank());
      const cuda::Stream stream(device);
      const cuda::DeviceArray<float> there(device, all), sums(device, own);
      cuda::copy_bytes(stream, const_cast<float*>(there.data()), in.data(), all * Index{sizeof(float)});
      stream.wait();
      for (int again = 0; again < 2; ++again) {  // the second finds what the first has left behind
        c.reduce_scatter_v(on_device ? there.data() : in.data(), counts,
                           on_device ? const_cast<float*>(sums.data()) : out.data());
        if (on_device) cuda::copy_bytes(stream, out.data(), sums.data(), own * Index{sizeof(float)});
        stream.wait();
        for (Index i = 0; i < own; ++i) {
          std::vector<float> leaves;
          for (int rank = 0; rank < c.size(); ++rank) leaves.push_back(value(rank, 300 * c.rank() + i));
          if (out[static_cast<std::size_t>(i)] != tree_sum(leaves.data(), c.size())) return "it differs";
        }
      }
      return "";
    };
    const long long before = calls_of_nccl("ncclReduceScatter");
    CHECK(joined(on_nccl_threads(size, run)) == "");
    return calls_of_nccl("ncclReduceScatter") - before;
  };
  CHECK(calls_for(2, true, 0) == 4);
  CHECK(calls_for(2, true, 1) == 0);
  CHECK(calls_for(2, false, 0) == 0);
  for (const int size : {1, 3, 4}) CHECK(calls_for(size, true, 0) == 0);
  check_nothing_leaked();
}

TEST_CASE("transfers over NCCL: any number under way, mixed with collectives, equals the serial oracle") {
  for (const bool on_device : {false, true}) {
    const auto run = [](Communicator& c) {
      RandomTransfers settings;
      settings.seed = 7;
      settings.largest = 3000;
      settings.rounds = 4;
      return make_random_transfers(c, settings);
    };
    CAPTURE(on_device);
    CHECK(joined(on_nccl_threads(3, run, patient, on_device ? Wrapper(with_device_pointers) : nullptr)) == "");
  }
  check_nothing_leaked();
}

TEST_CASE("host memory: a shard that lies at its place in the whole, in the first call of a group") {
  const auto run = [](Communicator& c) -> std::string {
    const Index count = 3000;  // more than there is room for behind an allocation of one shard
    Flat whole(static_cast<std::size_t>(count * c.size()), -1.0f);
    float* const own = whole.data() + c.rank() * count;
    std::fill(own, own + count, static_cast<float>(c.rank()));
    c.all_gather(own, count, whole.data());
    for (Index i = 0; i < count * c.size(); ++i)
      if (whole[static_cast<std::size_t>(i)] != static_cast<float>(i / count)) return "it differs";
    return "";
  };
  CHECK(joined(on_nccl_threads(3, run)) == "");
  check_nothing_leaked();
}

TEST_CASE("ranks that disagree over NCCL: every rank has a sentence, one says what differs, and nobody waits for it") {
  std::vector<Disagreement> all = disagreements();
  // Of these, one rank alone can tell: the last and the first.
  all.push_back({"the last", "rank 2 is in all_gather of float32 with 12 bytes (after 0 collectives) from rank 0",
                 [](Communicator& c) {
                   c.all_gather_v(values(9).data(), {c.rank() == 2 ? 3 : 2, 2, 2}, values(9).data());
                 }});
  all.push_back({"the first", "rank 0 is in all_gather of float32 with 12 bytes (after 0 collectives) from rank 2",
                 [](Communicator& c) {
                   c.all_gather_v(values(9).data(), {2, 2, c.rank() == 0 ? 3 : 2}, values(9).data());
                 }});
  for (const Disagreement& disagreement : all) {
    CAPTURE(disagreement.name);
    std::atomic<int> with_words{0};
    const auto run = [&](Communicator& c) { return expect_errors(c, disagreement, with_words); };
    CHECK(joined(on_nccl_threads(3, run)) == "");
    CHECK(with_words >= 1);
  }
  check_nothing_leaked();
}

TEST_CASE("an all_reduce of fewer elements than ranks: who has no piece to add up does not leave the others waiting") {
  const auto run = [](Communicator& c) -> std::string {
    for (Index count = 1; count <= 3; ++count)
      if (c.all_reduce(values(count)) != Flat(static_cast<std::size_t>(count), 3.0f)) return "another sum";
    return "";
  };
  CHECK(joined(on_nccl_threads(3, run)) == "");
  check_nothing_leaked();
}

TEST_CASE("zeros move nothing") {
  const auto run = [](Communicator& c) -> std::string {
    float nothing = 0;
    c.all_gather(&nothing, 0, static_cast<float*>(nullptr));
    c.all_reduce(static_cast<float*>(nullptr), 0);
    c.broadcast(static_cast<float*>(nullptr), 0, 2);
    c.reduce_scatter_v(static_cast<const float*>(nullptr), {0, 0, 0}, static_cast<float*>(nullptr));
    c.all_to_all_v(static_cast<const float*>(nullptr), {0, 0, 0}, static_cast<float*>(nullptr), {0, 0, 0});
    return c.ledger().total().bytes_sent == 0 ? "" : "zeros were sent";
  };
  const long long before = calls_of_nccl("ncclSend") + calls_of_nccl("ncclAllGather") + calls_of_nccl("ncclBroadcast");
  CHECK(joined(on_nccl_threads(3, run)) == "");
  CHECK(calls_of_nccl("ncclSend") + calls_of_nccl("ncclAllGather") + calls_of_nccl("ncclBroadcast") == before);
  check_nothing_leaked();
}

#if __has_include(<nccl.h>)
TEST_CASE("NCCL's interface, as it is written down here, is that of its own header") {
  namespace nccl = sim::nccl;
  CHECK(sizeof(nccl::UniqueId) == sizeof(ncclUniqueId));
  CHECK(int{nccl::kSuccess} == int{ncclSuccess});
  CHECK(int{nccl::kUnhandledCudaError} == int{ncclUnhandledCudaError});
  CHECK(int{nccl::kSystemError} == int{ncclSystemError});
  CHECK(int{nccl::kInternalError} == int{ncclInternalError});
  CHECK(int{nccl::kInvalidArgument} == int{ncclInvalidArgument});
  CHECK(int{nccl::kInvalidUsage} == int{ncclInvalidUsage});
  CHECK(int{nccl::kRemoteError} == int{ncclRemoteError});
  CHECK(int{nccl::kInProgress} == int{ncclInProgress});
  CHECK(int{nccl::kUint8} == int{ncclUint8});
  CHECK(int{nccl::kFloat32} == int{ncclFloat32});
  CHECK(int{nccl::kSum} == int{ncclSum});
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  const nccl::Config ours;
  CHECK(ours.magic == theirs.magic);
  CHECK(ours.version <= theirs.version);
  CHECK(ours.size <= theirs.size);
  CHECK(offsetof(nccl::Config, magic) == offsetof(ncclConfig_t, magic));
  CHECK(offsetof(nccl::Config, version) == offsetof(ncclConfig_t, version));
  CHECK(offsetof(nccl::Config, blocking) == offsetof(ncclConfig_t, blocking));
  CHECK(ours.room == theirs.cgaClusterSize);
}
#endif
