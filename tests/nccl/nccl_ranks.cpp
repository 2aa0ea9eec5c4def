#include "tests/nccl/nccl_ranks.hpp"

#include <algorithm>
#include <numeric>
#include <thread>
#include <utility>

#include "src/cuda/device.hpp"

namespace muonwalk::testing {

namespace {

class WithDevicePointers : public Backend {
 public:
  WithDevicePointers(int rank, Backend& inner)
      : inner_(inner), device_(rank % cuda::Device::count()), stream_(device_) {}

  std::unique_ptr<PostedMessage> post_send(const Envelope& envelope, int peer, const void* data,
                                           std::int64_t bytes) override {
    auto message = std::make_unique<OnDevice>(*this, nullptr, bytes);
    copy(message->memory.data(), data, bytes);
    message->inner = inner_.post_send(envelope, peer, message->memory.data(), bytes);
    return message;
  }

  std::unique_ptr<PostedMessage> post_receive(const Envelope& envelope, int peer, void* data,
                                              std::int64_t bytes) override {
    auto message = std::make_unique<OnDevice>(*this, data, bytes);
    message->inner = inner_.post_receive(envelope, peer, message->memory.data(), bytes);
    return message;
  }

  bool has_native(CollectiveKind kind, ElementType type) const override { return inner_.has_native(kind, type); }

  Traffic run_native(const NativeCall& call) override {
    const Index in_bytes = bytes_of(call.in_counts, call.type), out_bytes = bytes_of(call.out_counts, call.type);
    const auto* in = static_cast<const std::byte*>(call.in);
    auto* out = static_cast<std::byte*>(call.out);
    // Where one of the two lies in the other, so do the copies.
    const bool in_in_out = in != nullptr && out != nullptr && in >= out && in + in_bytes <= out + out_bytes;
    const bool out_in_in = in != nullptr && out != nullptr && out >= in && out + out_bytes <= in + in_bytes;
    cuda::DeviceArray<std::byte> first(device_, in_in_out ? out_bytes : in_bytes);
    cuda::DeviceArray<std::byte> second(device_, in_in_out || out_in_in ? 0 : out_bytes);
    NativeCall there = call;
    std::byte* const in_there = in_in_out ? first.data() + (in - out) : first.data();
    std::byte* const out_there = in_in_out ? first.data() : out_in_in ? first.data() + (out - in) : second.data();
    there.in = call.in == nullptr ? nullptr : in_there;
    there.out = call.out == nullptr ? nullptr : out_there;
    if (in_in_out) copy(first.data(), out, out_bytes);
    copy(in_there, in, in_bytes);
    const Traffic traffic = inner_.run_native(there);
    copy(out, out_there, out_bytes);
    return traffic;
  }

  void close(const std::string& reason) override { inner_.close(reason); }

 private:
  struct OnDevice : PostedMessage {
    OnDevice(WithDevicePointers& its_backend, void* its_place, Index its_bytes)
        : backend(its_backend), place(its_place), bytes(its_bytes), memory(its_backend.device_, its_bytes) {}
    void wait(const WaitsFor& waits_for) override {
      inner->wait(waits_for);
      if (place != nullptr) backend.copy(place, memory.data(), bytes);
    }
    WithDevicePointers& backend;
    void* place;
    Index bytes;
    cuda::DeviceArray<std::byte> memory;
    std::unique_ptr<PostedMessage> inner;
  };

  static Index bytes_of(const std::vector<Index>& counts, ElementType type) {
    return std::accumulate(counts.begin(), counts.end(), Index{0}) * element_size(type);
  }

  void copy(void* to, const void* from, Index bytes) {
    if (bytes == 0) return;
    cuda::copy_bytes(stream_, to, from, bytes);
    stream_.wait();
  }

  Backend& inner_;
  cuda::Device device_;
  cuda::Stream stream_;
};

}  // namespace

std::unique_ptr<sim::KeyStore> board_for_nccl(int size) {
  return std::make_unique<sim::KeyStore>(sim::GlooDevice::board_keys(size) + sim::NcclDevice::board_keys(size),
                                         sim::GlooDevice::board_value_bytes(size));
}

std::string as_nccl_rank(int rank, int size, sim::KeyStore& board, const RankFunction& function,
                         std::chrono::milliseconds timeout, const Wrapper& wrapper) {
  sim::GlooDevice gloo;
  auto beneath = gloo.connect("memory", rank, size, board, timeout);
  sim::NcclDevice device(rank, "rank " + std::to_string(rank));
  const std::unique_ptr<Backend> backend = device.connect("memory", rank, size, board, std::move(beneath), timeout);
  const std::unique_ptr<Backend> wrapped = wrapper ? wrapper(rank, *backend) : nullptr;
  Ledger ledger;
  Communicator communicator("memory", rank, size, wrapped ? *wrapped : *backend, ledger);
  return function(communicator);
}

std::vector<std::string> on_nccl_threads(int size, const RankFunction& function, std::chrono::milliseconds timeout,
                                         const Wrapper& wrapper) {
  const std::unique_ptr<sim::KeyStore> board = board_for_nccl(size);
  std::vector<std::string> complaints(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      std::string& complaint = complaints[static_cast<std::size_t>(rank)];
      try {
        complaint = as_nccl_rank(rank, size, *board, function, timeout, wrapper);
      } catch (const std::exception& error) {
        complaint = std::string("exception: ") + error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return complaints;
}

std::unique_ptr<Backend> with_device_pointers(int rank, Backend& inner) {
  return std::make_unique<WithDevicePointers>(rank, inner);
}

}  // namespace muonwalk::testing
