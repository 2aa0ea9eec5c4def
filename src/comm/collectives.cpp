// The collectives, written plainly as messages: every rank sends to every other what that one needs, then computes
// locally. Sums need room for what the others send: (n − 1) · piece elements, of an all-reduce of two ranks all of
// them, kept from call to call and not counted by the MemoryMeter, as the working memory inside a communication library
// never is.

#include "src/comm/messages.hpp"
#include "src/comm/predicted_traffic.hpp"
#include "src/numerics/tree_sum.hpp"

namespace muonwalk {

namespace {

// Where the bytes lie that one rank sends or gets.
struct Piece {
  std::byte* at = nullptr;  // null: nowhere, and there are 0 bytes
  Index bytes = 0;
};

// A memory that is cut into a piece for each rank, one behind the other.
class Pieces {
 public:
  Pieces(const void* memory, const std::vector<Index>& counts, ElementType type)
      : memory_(static_cast<std::byte*>(const_cast<void*>(memory))) {
    for (Index count : counts) begins_.push_back(begins_.back() + count * element_size(type));
  }
  Piece operator()(int r) const {
    const Index begin = begins_[static_cast<std::size_t>(r)], end = begins_[static_cast<std::size_t>(r) + 1];
    return {memory_ ? memory_ + begin : nullptr, end - begin};
  }

 private:
  std::byte* memory_;
  std::vector<Index> begins_ = {0};
};

// Each rank begins with its right-hand neighbour, so that not everybody talks to rank 0 first.
template <class To, class From>
Exchange with_everybody(const Envelope& envelope, int rank, int size, const To& to_rank, const From& from_rank) {
  Exchange all{envelope};
  for (int step = 1; step < size; ++step) {
    const int to = (rank + step) % size, from = (rank + size - step) % size;
    all.outgoing.push_back({to, to_rank(to).at, to_rank(to).bytes});
    all.incoming.push_back({from, from_rank(from).at, from_rank(from).bytes});
  }
  all.own = to_rank(rank).at;
  all.own_place = from_rank(rank).at;
  all.own_bytes = to_rank(rank).bytes;
  return all;
}

// The tree over ranks: part r is what rank r holds of the piece that is summed here.
template <class T>
void add_parts(const std::vector<const std::byte*>& parts, Index count, void* out) {
  std::vector<const T*> typed;
  typed.reserve(parts.size());
  for (const std::byte* part : parts) typed.push_back(reinterpret_cast<const T*>(part));
  tree_sum(typed, count, static_cast<T*>(out));
}

}  // namespace

// A dissemination barrier: in round k a rank hears from the one 2^k before it, which by then has heard from 2^k others.
void Communicator::barrier_of_messages(const Envelope& envelope) {
  for (int reach = 1; reach < size(); reach *= 2) {
    const int to = (rank() + reach) % size(), from = (rank() + size() - reach) % size();
    exchange({envelope, {{to, nullptr, 0}}, {{from, nullptr, 0}}});
  }
}

template <class PieceOf>
void Communicator::sum_pieces(const Envelope& envelope, const PieceOf& piece_of, void* out) {
  const Piece own = piece_of(rank());
  Exchanger* const exchanger = backend_->exchanger();
  const Index room_bytes = (size() - 1) * own.bytes;
  if (exchanger == nullptr && static_cast<Index>(scratch_.size()) < room_bytes)
    scratch_.resize(static_cast<std::size_t>(room_bytes));
  std::byte* const room = exchanger != nullptr ? exchanger->room(room_bytes) : scratch_.data();
  const auto part = [&](int r) {
    return r == rank() ? own : Piece{room + ((rank() + size() - r) % size() - 1) * own.bytes, own.bytes};
  };
  exchange(with_everybody(envelope, rank(), size(), piece_of, part));
  if (own.bytes == 0) return;
  const Index count = own.bytes / element_size(envelope.type);
  std::vector<const std::byte*> parts;
  for (int r = 0; r < size(); ++r) parts.push_back(part(r).at);
  if (exchanger != nullptr) return exchanger->sum(envelope.type, parts, count, out);
  (envelope.type == ElementType::float32 ? add_parts<float> : add_parts<bfloat16>)(parts, count, out);
}

void Communicator::reduce_pieces(const Envelope& envelope, const void* in, const std::vector<Index>& counts,
                                 void* out) {
  sum_pieces(envelope, Pieces(in, counts, envelope.type), out);
}

void Communicator::gather_pieces(const Envelope& envelope, const void* shard, const std::vector<Index>& counts,
                                 void* out) {
  const Pieces pieces(out, counts, envelope.type);
  const Piece own{static_cast<std::byte*>(const_cast<void*>(shard)), pieces(rank()).bytes};
  exchange(with_everybody(
      envelope, rank(), size(), [&](int) { return own; }, pieces));
}

// Two ranks send each other all they have, and both add: as many bytes as in two rounds, and half the messages.
void Communicator::all_reduce_of_messages(const Envelope& envelope, void* values, Index count) {
  if (size() == 2) {
    const Piece all{static_cast<std::byte*>(values), count * element_size(envelope.type)};
    return sum_pieces(
        envelope, [&](int) { return all; }, values);
  }
  std::vector<Index> counts;
  for (int r = 0; r < size(); ++r) {
    const auto [begin, end] = all_reduce_piece(r, size(), count);
    counts.push_back(end - begin);
  }
  void* const own = Pieces(values, counts, envelope.type)(rank()).at;
  reduce_pieces(envelope, values, counts, own);
  gather_pieces(envelope, own, counts, values);
}

void Communicator::all_to_all_of_messages(const Envelope& envelope, const void* in,
                                          const std::vector<Index>& send_counts, void* out,
                                          const std::vector<Index>& recv_counts) {
  const Pieces to_send(in, send_counts, envelope.type), to_receive(out, recv_counts, envelope.type);
  exchange(with_everybody(envelope, rank(), size(), to_send, to_receive));
}

void Communicator::broadcast_of_messages(const Envelope& envelope, void* values, Index count) {
  Exchange all{envelope};
  const int root = envelope.root;
  const Index bytes = count * element_size(envelope.type);
  if (rank() != root) all.incoming.push_back({root, values, bytes});
  for (int step = 1; rank() == root && step < size(); ++step)
    all.outgoing.push_back({(rank() + step) % size(), values, bytes});
  exchange(all);
}

}  // namespace muonwalk
