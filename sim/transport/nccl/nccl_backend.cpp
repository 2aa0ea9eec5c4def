#include "sim/transport/nccl/nccl_backend.hpp"

#include <fmt/format.h>

#include <functional>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "src/comm/predicted_traffic.hpp"
#include "src/errors.hpp"

namespace muonwalk::sim {
namespace {

using Bytes = std::vector<std::byte>;

// What a rank is about to call, as it tells the others.
struct WrittenCall {
  std::int64_t number = 0;
  std::int64_t bytes = 0;  // that it will send to the rank that reads this
  std::int32_t root = 0;
  std::int32_t kind = 0;
  std::int32_t type = 0;
  std::int32_t room = 0;
};

std::vector<Index> running_begins(const std::vector<Index>& counts) {
  std::vector<Index> begins(1, 0);
  for (const Index count : counts) begins.push_back(begins.back() + count);
  return begins;
}

// Memory of the device that is kept from call to call and grows as needed. As the working memory inside of a
// communication library it is not counted as held by the rank.
class Room {
 public:
  std::byte* of(const cuda::Device& device, Index bytes) {
    if (memory_.size() < bytes) {
      memory_ = {};  // first, so that the two need not fit side by side
      memory_ = cuda::DeviceArray<std::byte>(device, bytes);
    }
    return memory_.data();
  }

 private:
  cuda::DeviceArray<std::byte> memory_;
};

// A message of send or recv in device memory: it goes through the host's.
class StagedMessage : public PostedMessage {
 public:
  using ToDevice = std::function<void(void* to, const Bytes& bytes)>;
  StagedMessage(Bytes staged, void* to, ToDevice to_device)
      : staged_(std::move(staged)), to_(to), to_device_(std::move(to_device)) {}
  Bytes& staged() { return staged_; }
  void carried_by(std::unique_ptr<PostedMessage> message) { message_ = std::move(message); }
  void wait(const WaitsFor& waits_for) override {
    message_->wait(waits_for);
    if (to_ != nullptr) to_device_(to_, staged_);
  }

 private:
  Bytes staged_;
  void* to_;  // null where it is sent
  ToDevice to_device_;
  std::unique_ptr<PostedMessage> message_;  // goes first: it uses what is staged
};

class NcclBackend : public Backend {
 public:
  NcclBackend(NcclGroup::Member member, const cuda::Kernels& kernels, std::unique_ptr<Backend> beneath,
              std::unique_ptr<NcclGroup> group)
      : member_(std::move(member)),
        kernels_(kernels),
        device_(kernels.device()),
        beneath_(std::move(beneath)),
        group_(std::move(group)) {
    if (group_ == nullptr) own_stream_ = std::make_unique<cuda::Stream>(device_, "a group of one");
  }

  // No rank leaves while another may still read from its memory.
  ~NcclBackend() override {
    if (closed_ || group_ == nullptr) return;
    try {
      agree({CollectiveKind::barrier, ElementType::bytes, calls_, 0}, Sizes(peers(), 0), Sizes(peers(), 0));
      group_->leave();
    } catch (const std::exception&) {
      group_->abort();
    }
  }

  std::unique_ptr<PostedMessage> post_send(const Envelope& envelope, int peer, const void* data,
                                           std::int64_t bytes) override {
    require_open();
    if (!cuda::is_device_pointer(data)) return beneath_->post_send(envelope, peer, data, bytes);
    Bytes staged(static_cast<std::size_t>(bytes));
    cuda::copy_to_host(stream(), staged.data(), static_cast<const std::byte*>(data), bytes);
    auto message = std::make_unique<StagedMessage>(std::move(staged), nullptr, nullptr);
    message->carried_by(beneath_->post_send(envelope, peer, message->staged().data(), bytes));
    return message;
  }

  std::unique_ptr<PostedMessage> post_receive(const Envelope& envelope, int peer, void* data,
                                              std::int64_t bytes) override {
    require_open();
    if (!cuda::is_device_pointer(data)) return beneath_->post_receive(envelope, peer, data, bytes);
    const auto to_device = [this](void* to, const Bytes& arrived) {
      cuda::copy_bytes(stream(), to, arrived.data(), static_cast<Index>(arrived.size()));
      wait();
    };
    auto message = std::make_unique<StagedMessage>(Bytes(static_cast<std::size_t>(bytes)), data, to_device);
    message->carried_by(beneath_->post_receive(envelope, peer, message->staged().data(), bytes));
    return message;
  }

  bool has_native(CollectiveKind kind, ElementType) const override {
    return kind != CollectiveKind::send && kind != CollectiveKind::recv && kind != CollectiveKind::wait;
  }

  Traffic run_native(const NativeCall& call) override {
    require_open();
    if (group_ != nullptr) group_->begin(call.kind);
    traffic_ = Traffic();
    moved_ = call.moved;
    const Sizes out = bytes_of(call, call.out_counts), in = bytes_of(call, call.in_counts);
    switch (call.kind) {
      case CollectiveKind::barrier:
        barrier(call);
        break;
      case CollectiveKind::all_gather:
        all_gather(call, out);
        break;
      case CollectiveKind::reduce_scatter:
        reduce_scatter(call, in);
        break;
      case CollectiveKind::all_reduce:
        all_reduce(call, in.at(0));
        break;
      case CollectiveKind::all_to_all:
        all_to_all(call, in, out);
        break;
      case CollectiveKind::broadcast:
        broadcast(call, in.at(0));
        break;
      default:
        throw std::logic_error("a message from rank to rank is not a collective");
    }
    return traffic_;
  }

  // Where nothing is sent, the kernel counts nothing; otherwise nobody knows.
  KernelTraffic kernel_traffic() const override {
    return group_ == nullptr ? KernelTraffic{true, 0, 0} : KernelTraffic();
  }

  void close(const std::string& reason) override {
    if (closed_) return;
    closed_ = true;
    reason_ = reason;
    beneath_->close(reason);  // first, so that the peers notice while this rank still clears up
    if (group_ != nullptr) group_->abort();
  }

 private:
  using Sizes = std::vector<Index>;  // in bytes, by rank

  // What a call works on: device memory, be it the caller's or a copy of the host's.
  struct Memory {
    std::byte* in = nullptr;
    std::byte* out = nullptr;
    bool out_is_staged = false;
  };

  std::size_t peers() const { return static_cast<std::size_t>(member_.size); }
  std::size_t own() const { return static_cast<std::size_t>(member_.rank); }
  const cuda::Stream& stream() const { return group_ != nullptr ? group_->stream() : *own_stream_; }

  void wait() {
    if (group_ != nullptr) return group_->wait();
    own_stream_->wait();
  }

  void require_open() const {
    if (closed_) throw RunError(reason_);
  }

  [[noreturn]] void too_large(const NativeCall& call) const {
    throw std::invalid_argument(fmt::format(
        "rank {} of group {} asked for {} of {} over NCCL, but it takes more bytes than a 64-bit number can count",
        member_.rank, member_.group, collective_name(call.kind), element_name(call.type)));
  }

  Index times(const NativeCall& call, Index count, Index size) const {
    if (count < 0 || (size > 0 && count > std::numeric_limits<Index>::max() / size)) too_large(call);
    return count * size;
  }

  Sizes bytes_of(const NativeCall& call, const std::vector<Index>& counts) const {
    Sizes sizes;
    Index sum = 0;
    for (const Index count : counts) {
      sizes.push_back(times(call, count, element_size(call.type)));
      if (sizes.back() > std::numeric_limits<Index>::max() - sum) too_large(call);
      sum += sizes.back();
    }
    return sizes;
  }

  // Every rank tells every other what it is about to call and how much it will send, and goes on when all say the same.
  // So nobody enters a call of NCCL's that the others don't make, where it would hang.
  void agree(const Envelope& call, const Sizes& to_send, const Sizes& to_receive) {
    if (group_ == nullptr) return;
    const Envelope asks{CollectiveKind::barrier, ElementType::bytes, calls_++, 0};
    std::vector<WrittenCall> mine(peers()), theirs(peers());
    std::vector<std::unique_ptr<PostedMessage>> messages;
    for (int step = 1; step < member_.size; ++step) {
      const int from = before(step);
      messages.push_back(
          beneath_->post_receive(asks, from, &theirs[static_cast<std::size_t>(from)], sizeof(WrittenCall)));
    }
    for (int step = 1; step < member_.size; ++step) {
      const auto to = static_cast<std::size_t>(after(step));
      mine[to] = {call.number,
                  to_send[to],
                  call.root,
                  static_cast<std::int32_t>(call.kind),
                  static_cast<std::int32_t>(call.type),
                  0};
      messages.push_back(beneath_->post_send(asks, static_cast<int>(to), &mine[to], sizeof(WrittenCall)));
    }
    for (auto& message : messages) message->wait([](int) {});
    for (std::size_t peer = 0; peer < peers(); ++peer) {
      if (peer == own()) continue;
      const WrittenCall& theirs_is = theirs[peer];
      const Envelope peer_call{static_cast<CollectiveKind>(theirs_is.kind), static_cast<ElementType>(theirs_is.type),
                               theirs_is.number, theirs_is.root};
      const std::string wrong = mismatch(member_.group, member_.rank, call, to_receive[peer], static_cast<int>(peer),
                                         peer_call, theirs_is.bytes);
      if (!wrong.empty()) throw RunError(wrong);
    }
  }

  Envelope envelope_of(const NativeCall& call) const { return {call.kind, call.type, calls_, call.root}; }

  // The caller's memory where it is the device's; otherwise room for it, with a copy of the input.
  Memory on_device(const NativeCall& call, Index in_bytes, Index out_bytes, bool reads_input = true) {
    Memory memory;
    // One memory for both; where only the beginnings are one (a shard at its place in the whole), there are two copies.
    const bool same = call.in == call.out && in_bytes == out_bytes;
    memory.in = static_cast<std::byte*>(const_cast<void*>(call.in));
    memory.out = static_cast<std::byte*>(call.out);
    if (in_bytes > 0 && !cuda::is_device_pointer(call.in)) {
      memory.in = in_room_.of(device_, in_bytes);
      if (reads_input) cuda::copy_bytes(stream(), memory.in, call.in, in_bytes);
    }
    if (same) memory.out = memory.in;
    memory.out_is_staged = out_bytes > 0 && !cuda::is_device_pointer(call.out);
    if (memory.out_is_staged && !same) memory.out = out_room_.of(device_, out_bytes);
    return memory;
  }

  // The end of a call: what was staged goes back, and all is done.
  void finish(const NativeCall& call, const Memory& memory, Index out_bytes) {
    if (memory.out_is_staged) cuda::copy_bytes(stream(), call.out, memory.out, out_bytes);
    wait();
  }

  // A message of zero bytes is counted like any other: it was said when the ranks agreed.
  void sent(Index bytes, int peer) {
    traffic_ += send_traffic(bytes, ElementType::bytes);
    if (moved_) moved_(true, peer, bytes);
  }

  void received(Index bytes, int peer) {
    traffic_ += recv_traffic(bytes, ElementType::bytes);
    if (moved_) moved_(false, peer, bytes);
  }

  void send(const std::byte* from, Index bytes, int peer) {
    if (bytes > 0) group_->send(from, bytes, peer);
    sent(bytes, peer);
  }

  void receive(std::byte* to, Index bytes, int peer) {
    if (bytes > 0) group_->receive(to, bytes, peer);
    received(bytes, peer);
  }

  // Who comes so many steps after and before this rank: each begins with its neighbour, so that not everybody talks to
  // rank 0 first.
  int after(int steps) const { return (member_.rank + steps) % member_.size; }
  int before(int steps) const { return (member_.rank + member_.size - steps) % member_.size; }

  // Everybody's piece to everybody: out[begins[r]…] is that of rank r.
  void gather_pieces(std::byte* out, const Sizes& begins) {
    if (group_ == nullptr) return;
    const auto size = [&](std::size_t r) { return begins[r + 1] - begins[r]; };
    group_->together([&] {
      for (int step = 1; step < member_.size; ++step) {
        const int to = after(step);
        const int from = before(step);
        const auto f = static_cast<std::size_t>(from);
        send(out + begins[own()], size(own()), to);
        receive(out + begins[f], size(f), from);
      }
    });
  }

  // Piece r to rank r, and the tree over what came for this one.
  void reduce_pieces(const NativeCall& call, const std::byte* in, const Sizes& begins, std::byte* out) {
    const auto size = [&](std::size_t r) { return begins[r + 1] - begins[r]; };
    const Index own_bytes = size(own());
    std::vector<const std::byte*> parts(peers());
    parts[own()] = in + begins[own()];
    if (group_ != nullptr) {
      std::byte* room = sum_room_.of(device_, times(call, own_bytes, member_.size - 1));
      group_->together([&] {
        for (int step = 1; step < member_.size; ++step) {
          const int to = after(step);
          const int from = before(step);
          const auto t = static_cast<std::size_t>(to);
          std::byte* arrives = room + (step - 1) * own_bytes;
          send(in + begins[t], size(t), to);
          receive(arrives, own_bytes, from);
          parts[static_cast<std::size_t>(from)] = arrives;
        }
      });
    }
    if (own_bytes == 0) return;
    if (call.type == ElementType::float32)
      add<float>(parts, own_bytes, out);
    else
      add<bfloat16>(parts, own_bytes, out);
  }

  template <class T>
  void add(const std::vector<const std::byte*>& parts, Index bytes, std::byte* out) {
    std::vector<const T*> typed;
    for (const std::byte* part : parts) typed.push_back(reinterpret_cast<const T*>(part));
    kernels_.tree_sum(stream(), typed, bytes / Index{sizeof(T)}, reinterpret_cast<T*>(out));
  }

  // That all have said what they are about to call is the barrier.
  void barrier(const NativeCall& call) {
    const Sizes nothing(peers(), 0);
    agree(envelope_of(call), nothing, nothing);
    for (int reach = 1; reach < member_.size; reach *= 2) {
      sent(0, after(reach));
      received(0, before(reach));
    }
  }

  void all_gather(const NativeCall& call, const Sizes& shards) {
    agree(envelope_of(call), Sizes(peers(), shards[own()]), shards);
    const Sizes begins = running_begins(shards);
    const Memory memory = on_device(call, shards[own()], begins.back());
    bool equal = true;
    for (const Index shard : shards) equal = equal && shard == shards[0];
    if (group_ != nullptr && equal && shards[0] > 0) {
      group_->all_gather(memory.in, memory.out, shards[0]);
      for (int step = 1; step < member_.size; ++step) {
        sent(shards[0], after(step));
        received(shards[0], before(step));
      }
    } else {
      std::byte* place = memory.out == nullptr ? nullptr : memory.out + begins[own()];
      if (place != memory.in) cuda::copy_bytes(stream(), place, memory.in, shards[own()]);
      gather_pieces(memory.out, begins);
    }
    finish(call, memory, begins.back());
  }

  void reduce_scatter(const NativeCall& call, const Sizes& pieces) {
    agree(envelope_of(call), pieces, Sizes(peers(), pieces[own()]));
    const Sizes begins = running_begins(pieces);
    const Memory memory = on_device(call, begins.back(), pieces[own()]);
    reduce_pieces(call, memory.in, begins, memory.out);
    finish(call, memory, pieces[own()]);
  }

  void all_reduce(const NativeCall& call, Index bytes) {
    agree(envelope_of(call), Sizes(peers(), bytes), Sizes(peers(), bytes));
    const Index element = element_size(call.type);
    Sizes begins;
    for (int r = 0; r < member_.size; ++r)
      begins.push_back(all_reduce_piece(r, member_.size, bytes / element).first * element);
    begins.push_back(bytes);
    const Memory memory = on_device(call, bytes, bytes);
    reduce_pieces(call, memory.in, begins, memory.out == nullptr ? nullptr : memory.out + begins[own()]);
    gather_pieces(memory.out, begins);
    finish(call, memory, bytes);
  }

  void all_to_all(const NativeCall& call, const Sizes& to_send, const Sizes& to_receive) {
    agree(envelope_of(call), to_send, to_receive);
    const Sizes out_of = running_begins(to_send), into = running_begins(to_receive);
    const Memory memory = on_device(call, out_of.back(), into.back());
    cuda::copy_bytes(stream(), memory.out + into[own()], memory.in + out_of[own()], to_send[own()]);
    if (group_ != nullptr) {
      group_->together([&] {
        for (int step = 1; step < member_.size; ++step) {
          const int to = after(step);
          const int from = before(step);
          const auto t = static_cast<std::size_t>(to), f = static_cast<std::size_t>(from);
          send(memory.in + out_of[t], to_send[t], to);
          receive(memory.out + into[f], to_receive[f], from);
        }
      });
    }
    finish(call, memory, into.back());
  }

  void broadcast(const NativeCall& call, Index bytes) {
    agree(envelope_of(call), Sizes(peers(), bytes), Sizes(peers(), bytes));
    const Memory memory = on_device(call, bytes, bytes, member_.rank == call.root);
    if (group_ != nullptr && bytes > 0) group_->broadcast(memory.out, bytes, call.root);
    if (member_.rank != call.root) received(bytes, call.root);
    for (int step = 1; step < member_.size && member_.rank == call.root; ++step) sent(bytes, after(step));
    finish(call, memory, bytes);
  }

  NcclGroup::Member member_;
  cuda::Kernels kernels_;
  cuda::Device device_;
  std::unique_ptr<Backend> beneath_;
  std::unique_ptr<NcclGroup> group_;          // null in a group of one
  std::unique_ptr<cuda::Stream> own_stream_;  // of a group of one
  Room in_room_, out_room_, sum_room_;
  Traffic traffic_;  // of the call that is being made
  std::function<void(bool sent, int peer, std::int64_t bytes)> moved_;
  std::int64_t calls_ = 0;  // made so far
  bool closed_ = false;
  std::string reason_;
};

}  // namespace

std::unique_ptr<Backend> over_nccl(const NcclGroup::Member& member, const cuda::Kernels& kernels,
                                   std::unique_ptr<Backend> beneath, std::unique_ptr<NcclGroup> group) {
  return std::make_unique<NcclBackend>(member, kernels, std::move(beneath), std::move(group));
}

}  // namespace muonwalk::sim
