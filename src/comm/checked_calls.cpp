#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "src/comm/messages.hpp"
#include "src/errors.hpp"

namespace muonwalk {

namespace {

// What is wrong with one call, told with the words that all such sentences begin with.
class ArgumentCheck {
 public:
  ArgumentCheck(const Communicator& communicator, CollectiveKind kind, ElementType type)
      : communicator_(communicator), kind_(kind), type_(type) {}

  [[noreturn]] void fail(const std::string& why) const {
    throw std::invalid_argument(fmt::format("rank {} of group {} asked for {} of {}, but {}", communicator_.rank(),
                                            communicator_.group(), collective_name(kind_), element_name(type_), why));
  }

  // The bytes of `count` elements.
  Index bytes(Index count) const {
    if (count < 0) fail(fmt::format("the count {} is negative; counts start at 0", count));
    if (count > std::numeric_limits<Index>::max() / element_size(type_))
      fail(std::to_string(count) + " elements are more bytes than a 64-bit number can count");
    return count * element_size(type_);
  }

  // The bytes of all counts together, one for each rank.
  Index bytes(const std::vector<Index>& counts, const char* what) const {
    if (static_cast<int>(counts.size()) != communicator_.size())
      fail(fmt::format("there are {} {}; it takes one for each of the {} ranks", counts.size(), what,
                       communicator_.size()));
    Index sum = 0;
    for (Index count : counts) {
      const Index more = bytes(count);
      if (more > std::numeric_limits<Index>::max() - sum)
        fail(std::string("the ") + what + " add up to more bytes than a 64-bit number can count");
      sum += more;
    }
    return sum;
  }

  void memory(const void* values, Index bytes, const char* what) const {
    if (bytes > 0 && values == nullptr) fail(fmt::format("the memory {} is null; it takes {} bytes", what, bytes));
  }

  void peer(int number, const char* what) const {
    if (number < 0 || number >= communicator_.size())
      fail(fmt::format("{} {} does not exist; ranks go from 0 to {}", what, number, communicator_.size() - 1));
  }

  void summable() const {
    if (type_ == ElementType::bytes) fail("bytes have no sum; use float or bfloat16 elements");
  }

  // Two ranges of memory must be apart, unless the first begins at `own_place`, where it is meant to lie.
  void apart(const void* first, Index first_bytes, const void* second, Index second_bytes,
             const void* own_place) const {
    if (first == own_place || first_bytes == 0 || second_bytes == 0) return;
    const auto a = reinterpret_cast<std::uintptr_t>(first);
    const auto b = reinterpret_cast<std::uintptr_t>(second);
    if (a < b + static_cast<std::uintptr_t>(second_bytes) && b < a + static_cast<std::uintptr_t>(first_bytes))
      fail(own_place ? "input and output overlap; they must be apart, or the smaller one at its own place in the larger"
                     : "input and output overlap; they must be apart");
  }

 private:
  const Communicator& communicator_;
  CollectiveKind kind_;
  ElementType type_;
};

// `memory` + `bytes`, also for null memory, which only goes with zero bytes.
const void* shifted(const void* memory, Index bytes) {
  return memory ? static_cast<const std::byte*>(memory) + bytes : nullptr;
}

// The sum of the first `ranks` counts.
Index sum(const std::vector<Index>& counts, int ranks) {
  return std::accumulate(counts.begin(), counts.begin() + ranks, Index{0});
}

}  // namespace

Communicator::Communicator(std::string group, int rank, int size, Backend& backend, Ledger& ledger)
    : group_(std::move(group)), rank_(rank), size_(size), backend_(&backend), ledger_(&ledger) {
  if (size < 1 || rank < 0 || rank >= size)
    throw std::invalid_argument(
        fmt::format("group {} was to have rank {} of {}, but ranks go from 0 to size − 1", group_, rank, size));
  for (auto& directions : numbers_)
    for (auto& by_peer : directions) by_peer.resize(static_cast<std::size_t>(size), 0);
}

template <class Work>
void Communicator::collective(const Call& call, const Work& of_messages) {
  observed(call, [&] {
    const Envelope envelope{call.kind, call.type, collectives_++, std::max(call.peer, 0)};
    Exchanger* const exchanger = backend_->exchanger();
    if (exchanger == nullptr) return of_messages(envelope);
    for (CallObserver* observer : observers_) observer->waits(call.kind, -1);
    moved_together_.clear();
    guarded([&] {
      of_messages(envelope);
      exchanger->wait();
    });
    for (CallObserver* observer : observers_) observer->goes_on();
    for (const Message& message : moved_together_) tell(call, message);
  });
}

void Communicator::barrier() {
  collective({group_, CollectiveKind::barrier, ElementType::bytes, 0, 0, -1},
             [&](const Envelope& envelope) { barrier_of_messages(envelope); });
}

Call Communicator::checked_message(CollectiveKind kind, const void* values, Index count, ElementType type,
                                   int peer) const {
  const ArgumentCheck check(*this, kind, type);
  const bool sends = kind == CollectiveKind::send;
  check.peer(peer, "peer");
  if (peer == rank_) check.fail("the peer is the rank itself; copy the values instead");
  check.memory(values, check.bytes(count), sends ? "to send" : "to receive into");
  return {group_, kind, type, sends ? count : 0, sends ? 0 : count, peer};
}

void Communicator::checked_all_gather_v(const void* shard, const std::vector<Index>& counts, ElementType type,
                                        void* out) {
  const ArgumentCheck check(*this, CollectiveKind::all_gather, type);
  const Index out_bytes = check.bytes(counts, "shard counts");
  const Index own = counts[static_cast<std::size_t>(rank_)];
  const Index shard_bytes = check.bytes(own);
  check.memory(shard, shard_bytes, "of the shard");
  check.memory(out, out_bytes, "for the gathered values");
  check.apart(shard, shard_bytes, out, out_bytes, shifted(out, check.bytes(sum(counts, rank_))));
  collective({group_, CollectiveKind::all_gather, type, own, sum(counts, size_), -1},
             [&](const Envelope& envelope) { gather_pieces(envelope, shard, counts, out); });
}

void Communicator::checked_reduce_scatter_v(const void* in, const std::vector<Index>& counts, ElementType type,
                                            void* out) {
  const ArgumentCheck check(*this, CollectiveKind::reduce_scatter, type);
  check.summable();
  const Index in_bytes = check.bytes(counts, "piece counts");
  const Index own = counts[static_cast<std::size_t>(rank_)];
  const Index out_bytes = check.bytes(own);
  check.memory(in, in_bytes, "to sum up");
  check.memory(out, out_bytes, "for the sums");
  check.apart(out, out_bytes, in, in_bytes, shifted(in, check.bytes(sum(counts, rank_))));
  collective({group_, CollectiveKind::reduce_scatter, type, sum(counts, size_), own, -1},
             [&](const Envelope& envelope) { reduce_pieces(envelope, in, counts, out); });
}

void Communicator::checked_all_reduce(void* values, Index count, ElementType type) {
  const ArgumentCheck check(*this, CollectiveKind::all_reduce, type);
  check.summable();
  check.memory(values, check.bytes(count), "to sum up");
  collective({group_, CollectiveKind::all_reduce, type, count, count, -1},
             [&](const Envelope& envelope) { all_reduce_of_messages(envelope, values, count); });
}

void Communicator::checked_all_to_all_v(const void* in, const std::vector<Index>& send_counts, void* out,
                                        const std::vector<Index>& recv_counts, ElementType type) {
  const ArgumentCheck check(*this, CollectiveKind::all_to_all, type);
  const Index in_bytes = check.bytes(send_counts, "counts to send");
  const Index out_bytes = check.bytes(recv_counts, "counts to receive");
  const Index own_out = send_counts[static_cast<std::size_t>(rank_)];
  const Index own_in = recv_counts[static_cast<std::size_t>(rank_)];
  if (own_out != own_in)
    check.fail(fmt::format("it sends {} elements to itself and receives {} from itself; the two must be equal", own_out,
                           own_in));
  check.memory(in, in_bytes, "to send");
  check.memory(out, out_bytes, "to receive into");
  check.apart(in, in_bytes, out, out_bytes, nullptr);
  collective({group_, CollectiveKind::all_to_all, type, sum(send_counts, size_), sum(recv_counts, size_), -1},
             [&](const Envelope& envelope) { all_to_all_of_messages(envelope, in, send_counts, out, recv_counts); });
}

void Communicator::checked_broadcast(void* values, Index count, ElementType type, int root) {
  const ArgumentCheck check(*this, CollectiveKind::broadcast, type);
  check.peer(root, "root");
  check.memory(values, check.bytes(count), "to broadcast");
  collective({group_, CollectiveKind::broadcast, type, count, count, root},
             [&](const Envelope& envelope) { broadcast_of_messages(envelope, values, count); });
}

Index Communicator::piece_of(Index elements) const {
  if (elements % size_ != 0)
    throw RunError(
        fmt::format("rank {} of group {} asked for reduce_scatter of {} elements, but {} ranks can't get equal pieces "
                    "of them; pad to a multiple of {}",
                    rank_, group_, elements, size_, size_));
  return elements / size_;
}

}  // namespace muonwalk
