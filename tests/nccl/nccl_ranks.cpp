#include "tests/nccl/nccl_ranks.hpp"

#include <algorithm>
#include <map>
#include <thread>
#include <utility>

#include "src/cuda/device.hpp"

namespace muonwalk::testing {

namespace {

class WithDevicePointers : public Backend, public Exchanger {
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

  Exchanger* exchanger() override { return this; }

  // What comes lies as it does on the host, so one memory is made for all of it.
  void exchange(const Exchange& all) override {
    Exchange there = all;
    std::byte *first = static_cast<std::byte*>(all.own_place),
              *last = first == nullptr ? nullptr : first + all.own_bytes;
    for (const auto& message : all.incoming) {
      auto* const data = static_cast<std::byte*>(message.data);
      if (message.bytes == 0 || cuda::is_device_pointer(data)) continue;
      first = first == nullptr ? data : std::min(first, data);
      last = std::max(last, data + message.bytes);
    }
    const cuda::DeviceArray<std::byte> out = on_device(first, last - first);
    const auto mapped = [&](void* data) -> void* {
      if (data == nullptr || cuda::is_device_pointer(data)) return data;
      return const_cast<std::byte*>(out.data()) + (static_cast<std::byte*>(data) - first);
    };
    std::map<const void*, cuda::DeviceArray<std::byte>> in;
    const auto copied = [&](const void* data, Index bytes) -> void* {
      if (bytes == 0) return nullptr;
      if (in.count(data) == 0) in.emplace(data, on_device(data, bytes));
      return in.at(data).data();
    };
    for (auto& message : there.outgoing) message.data = copied(message.data, message.bytes);
    for (auto& message : there.incoming) message.data = message.bytes == 0 ? nullptr : mapped(message.data);
    there.own_place = mapped(all.own_place);
    there.own = all.own == all.own_place ? there.own_place : copied(all.own, all.own_bytes);
    inner_.exchanger()->exchange(there);
    inner_.exchanger()->wait();
    copy(first, out.data(), last - first);
  }
  std::byte* room(std::int64_t bytes) override { return inner_.exchanger()->room(bytes); }
  void sum(ElementType type, const std::vector<const std::byte*>& parts, Index count, void* out) override {
    const Index bytes = count * element_size(type);
    std::vector<const std::byte*> there = parts;
    cuda::DeviceArray<std::byte> own, result = on_device(out, bytes);
    for (const std::byte*& part : there)
      if (!cuda::is_device_pointer(part)) part = (own = on_device(part, bytes)).data();
    inner_.exchanger()->sum(type, there, count, result.data());
    inner_.exchanger()->wait();
    copy(out, result.data(), bytes);
  }
  void wait() override { inner_.exchanger()->wait(); }

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

  cuda::DeviceArray<std::byte> on_device(const void* data, Index bytes) {
    cuda::DeviceArray<std::byte> memory(device_, bytes);
    copy(memory.data(), data, bytes);
    return memory;
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
