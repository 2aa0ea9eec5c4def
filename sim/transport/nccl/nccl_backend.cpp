#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sim/transport/nccl/nccl_group.hpp"
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

// Places in such a room for what lies in the host's memory, side by side. What is the device's stays where it is.
class Stage {
 public:
  // `bytes`: as many as will be asked for at the most.
  Stage(Room& room, const cuda::Device& device, Index bytes) : room_(room), device_(device), bytes_(bytes) {}
  // True where a new place was taken for these bytes.
  bool needed(const void* memory, Index bytes) {
    if (bytes > 0 && memory == last_) return false;  // it goes to several ranks
    last_ = bytes > 0 ? memory : nullptr;
    place_ = static_cast<std::byte*>(const_cast<void*>(memory));
    if (bytes == 0 || cuda::is_device_pointer(memory)) return false;
    place_ = room_.of(device_, bytes_) + used_;
    used_ += bytes;
    return true;
  }
  std::byte* place() const { return place_; }

 private:
  Room& room_;
  const cuda::Device& device_;
  Index bytes_, used_ = 0;
  const void* last_ = nullptr;
  std::byte* place_ = nullptr;
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

class NcclBackend : public Backend, private Exchanger {
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

  Exchanger* exchanger() override { return this; }

  // Where nothing is sent, the kernel counts nothing; otherwise nobody knows.
  std::optional<std::int64_t> kernel_bytes_sent() const override {
    return group_ == nullptr ? std::optional<std::int64_t>(0) : std::nullopt;
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

  std::size_t peers() const { return static_cast<std::size_t>(member_.size); }
  std::size_t own() const { return static_cast<std::size_t>(member_.rank); }
  const cuda::Stream& stream() const { return group_ != nullptr ? group_->stream() : *own_stream_; }

  void wait() override {
    begun_ = false;
    for (const Return& each : std::exchange(to_return_, {})) cuda::copy_bytes(stream(), each.to, each.from, each.bytes);
    if (group_ != nullptr) return group_->wait();
    own_stream_->wait();
  }

  void require_open() const {
    if (closed_) throw RunError(reason_);
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

  void exchange(const Exchange& all) override {
    require_open();
    // What was begun before may be what is sent now, in the host's memory. All wait, or none: who did not would ask
    // another rank what it calls next while that one waits for what is still to be sent.
    if (begun_) wait();
    Sizes to_send(peers(), 0), to_receive(peers(), 0);
    for (const auto& message : all.outgoing) to_send[static_cast<std::size_t>(message.peer)] = message.bytes;
    for (const auto& message : all.incoming) to_receive[static_cast<std::size_t>(message.peer)] = message.bytes;
    if (group_ != nullptr) group_->begin(all.envelope.kind);
    agree(all.envelope, to_send, to_receive);
    const Index in_bytes = std::accumulate(to_send.begin(), to_send.end(), all.own_bytes);
    const Index out_bytes = std::accumulate(to_receive.begin(), to_receive.end(), all.own_bytes);
    Stage in(in_room_, device_, in_bytes), out(out_room_, device_, out_bytes);
    begun_ = all.envelope.kind != CollectiveKind::barrier;
    const bool equal = std::all_of(all.incoming.begin(), all.incoming.end(),
                                   [&](const auto& message) { return message.bytes == all.own_bytes; });
    if (all.envelope.kind == CollectiveKind::all_gather && equal && all.own_bytes > 0) {
      std::byte* whole = static_cast<std::byte*>(all.own_place) - member_.rank * all.own_bytes;
      const std::byte* const own = to_device(in, all.own, all.own_bytes);
      whole = from_device(out, whole, out_bytes);
      if (group_ != nullptr)
        return group_->call("ncclAllGather", nccl_library().AllGather, own, whole, all.own_bytes, nccl::kUint8);
      if (whole != own) cuda::copy_bytes(stream(), whole, own, all.own_bytes);
      return;
    }
    // Two numbers have one sum, in whatever order they are added. So NCCL may do it, where it finds them side by side.
    sum_ = nullptr;
    if (all.envelope.kind == CollectiveKind::reduce_scatter && all.envelope.type == ElementType::float32 &&
        member_.size == 2 && equal && all.own_bytes > 0 && all.outgoing[0].bytes == all.own_bytes) {
      const auto *const own = static_cast<const std::byte*>(all.own), *const other = static_cast<const std::byte*>(
                                                                          all.outgoing[0].data);
      const auto *const first = member_.rank == 0 ? own : other, *const second = member_.rank == 0 ? other : own;
      if (first + all.own_bytes == second && cuda::is_device_pointer(own)) {
        sum_ = all.incoming[0].data;
        return group_->call("ncclReduceScatter", nccl_library().ReduceScatter, first, all.incoming[0].data,
                            all.own_bytes / element_size(all.envelope.type), nccl::kFloat32, nccl::kSum);
      }
    }
    if (all.own_place != all.own) {
      const std::byte* const own = to_device(in, all.own, all.own_bytes);
      cuda::copy_bytes(stream(), from_device(out, all.own_place, all.own_bytes), own, all.own_bytes);
    }
    if (group_ == nullptr || in_bytes + out_bytes == 2 * all.own_bytes) return;  // there is nothing to move
    if (all.envelope.kind == CollectiveKind::broadcast) {
      const bool sends = member_.rank == all.envelope.root;
      const Index bytes = sends ? all.outgoing[0].bytes : out_bytes;
      std::byte* const values =
          sends ? to_device(in, all.outgoing[0].data, bytes) : from_device(out, all.incoming[0].data, bytes);
      return group_->call("ncclBroadcast", nccl_library().Broadcast, values, values, bytes, nccl::kUint8,
                          all.envelope.root);
    }
    // What is staged is copied before the group of calls begins.
    std::vector<const std::byte*> from;
    std::vector<std::byte*> to;
    for (const auto& message : all.outgoing) from.push_back(to_device(in, message.data, message.bytes));
    for (const auto& message : all.incoming) to.push_back(from_device(out, message.data, message.bytes));
    group_->together([&] {
      const nccl::Calls& calls = nccl_library();
      for (std::size_t i = 0; i < from.size(); ++i) {
        const auto& out_message = all.outgoing[i];
        const auto& in_message = all.incoming[i];
        if (out_message.bytes > 0)
          group_->call("ncclSend", calls.Send, from[i], out_message.bytes, nccl::kUint8, out_message.peer);
        if (in_message.bytes > 0)
          group_->call("ncclRecv", calls.Recv, to[i], in_message.bytes, nccl::kUint8, in_message.peer);
      }
    });
  }

  std::byte* room(std::int64_t bytes) override { return sum_room_.of(device_, bytes); }

  void sum(ElementType type, const std::vector<const std::byte*>& parts, Index count, void* out) override {
    if (type == ElementType::float32)
      add<float>(parts, count, out);
    else
      add<bfloat16>(parts, count, out);
  }

  template <class T>
  void add(const std::vector<const std::byte*>& parts, Index count, void* out) {
    const Index bytes = count * Index{sizeof(T)};
    Stage in(in_room_, device_, bytes), result(out_room_, device_, bytes);  // only a rank's own part may be the host's
    if (sum_ != nullptr)                                                    // it was added up on its way
      return cuda::copy_bytes(stream(), from_device(result, out, bytes), std::exchange(sum_, nullptr), bytes);
    std::vector<const T*> typed;
    for (const std::byte* part : parts) typed.push_back(reinterpret_cast<const T*>(to_device(in, part, bytes)));
    kernels_.tree_sum(stream(), typed, count, reinterpret_cast<T*>(from_device(result, out, bytes)));
  }

  // Where these bytes lie on the device; a copy of the host's.
  std::byte* to_device(Stage& stage, const void* from, Index bytes) {
    if (stage.needed(from, bytes)) cuda::copy_bytes(stream(), stage.place(), from, bytes);
    return stage.place();
  }
  // Where they are to come to on the device. The host gets them when it waits.
  std::byte* from_device(Stage& stage, void* to, Index bytes) {
    if (stage.needed(to, bytes)) to_return_.push_back({to, stage.place(), bytes});
    return stage.place();
  }

  // So many steps after and before this rank: each begins with its neighbour, so not all talk to rank 0 first.
  int after(int steps) const { return (member_.rank + steps) % member_.size; }
  int before(int steps) const { return (member_.rank + member_.size - steps) % member_.size; }

  // What the host's memory gets once it has come.
  struct Return {
    void* to;
    const std::byte* from;
    Index bytes;
  };

  NcclGroup::Member member_;
  cuda::Kernels kernels_;
  cuda::Device device_;
  std::unique_ptr<Backend> beneath_;
  std::unique_ptr<NcclGroup> group_;          // null in a group of one
  std::unique_ptr<cuda::Stream> own_stream_;  // of a group of one
  Room in_room_, out_room_, sum_room_;
  std::vector<Return> to_return_;
  const void* sum_ = nullptr;  // of the exchange before, where NCCL has added up; else null
  bool begun_ = false;         // something that nobody has waited for, on one rank as on all
  std::int64_t calls_ = 0;     // made so far
  bool closed_ = false;
  std::string reason_;
};

}  // namespace

std::unique_ptr<Backend> over_nccl(const NcclGroup::Member& member, const cuda::Kernels& kernels,
                                   std::unique_ptr<Backend> beneath, std::unique_ptr<NcclGroup> group) {
  return std::make_unique<NcclBackend>(member, kernels, std::move(beneath), std::move(group));
}

}  // namespace muonwalk::sim
