// The collectives, written plainly as messages: every rank sends to every other what that one needs, then computes
// locally. Sums need room for what the others send: (n − 1) · piece elements, kept from call to call and not counted by
// the MemoryMeter, as the working memory inside a communication library never is.

#include <cstring>

#include "src/comm/messages.hpp"
#include "src/comm/predicted_traffic.hpp"
#include "src/numerics/tree_sum.hpp"

namespace muonwalk {

namespace {

// counts[0], counts[0] + counts[1], …: where each rank's range begins, and at the end their sum.
std::vector<Index> running_begins(const std::vector<Index>& counts) {
  std::vector<Index> begins(1, 0);
  for (Index count : counts) begins.push_back(begins.back() + count);
  return begins;
}

// Copies a rank's own part, which no message carries. Nothing to do where it already lies at its place.
void copy_own(std::byte* to, const void* from, Index bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, static_cast<std::size_t>(bytes));
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

// What all ranks of the group call together gets a number.
Envelope Communicator::next_envelope(CollectiveKind kind, ElementType type, int root) {
  return {kind, type, collectives_++, root};
}

// A dissemination barrier: in round k a rank hears from the one 2^k before it, which by then has heard from 2^k others.
void Communicator::barrier_of_messages() {
  const Envelope envelope = next_envelope(CollectiveKind::barrier, ElementType::bytes);
  for (int reach = 1; reach < size(); reach *= 2) {
    const int to = (rank() + reach) % size();
    const int from = (rank() + size() - reach) % size();
    exchange(envelope, {Outgoing{to, nullptr, 0}}, {Incoming{from, nullptr, 0}});
  }
}

void Communicator::gather_pieces(const Envelope& envelope, const std::vector<Index>& begins, ElementType type,
                                 std::byte* out) {
  const Index bytes = element_size(type);
  const auto piece_bytes = [&](int r) { return (begins[std::size_t(r) + 1] - begins[std::size_t(r)]) * bytes; };
  const auto piece_at = [&](int r) { return out ? out + begins[std::size_t(r)] * bytes : nullptr; };
  std::vector<Outgoing> outgoing;
  std::vector<Incoming> incoming;
  // Each rank begins with its right-hand neighbour, so that not everybody talks to rank 0 first.
  for (int step = 1; step < size(); ++step) {
    const int to = (rank() + step) % size();
    const int from = (rank() + size() - step) % size();
    outgoing.push_back({to, piece_at(rank()), piece_bytes(rank())});
    incoming.push_back({from, piece_at(from), piece_bytes(from)});
  }
  if (size() > 1) exchange(envelope, outgoing, incoming);
}

void Communicator::reduce_pieces(const Envelope& envelope, const std::byte* in, const std::vector<Index>& begins,
                                 ElementType type, void* out) {
  const Index bytes = element_size(type);
  const auto piece_bytes = [&](int r) { return (begins[std::size_t(r) + 1] - begins[std::size_t(r)]) * bytes; };
  const auto piece_at = [&](int r) { return in ? in + begins[std::size_t(r)] * bytes : nullptr; };
  const Index own_bytes = piece_bytes(rank());
  const std::size_t room = static_cast<std::size_t>((size() - 1) * own_bytes);
  if (scratch_.size() < room) scratch_.resize(room);

  std::vector<Outgoing> outgoing;
  std::vector<Incoming> incoming;
  std::vector<const std::byte*> parts(static_cast<std::size_t>(size()));
  parts[std::size_t(rank())] = piece_at(rank());
  for (int step = 1; step < size(); ++step) {
    const int to = (rank() + step) % size();
    const int from = (rank() + size() - step) % size();
    std::byte* arrives = scratch_.data() + (step - 1) * own_bytes;
    outgoing.push_back({to, piece_at(to), piece_bytes(to)});
    incoming.push_back({from, arrives, own_bytes});
    parts[std::size_t(from)] = arrives;
  }
  if (size() > 1) exchange(envelope, outgoing, incoming);
  const Index count = own_bytes / bytes;
  if (count == 0) return;
  if (type == ElementType::float32) {
    add_parts<float>(parts, count, out);
  } else {
    add_parts<bfloat16>(parts, count, out);
  }
}

void Communicator::all_gather_of_messages(const void* shard, const std::vector<Index>& counts, ElementType type,
                                          void* out) {
  const Envelope envelope = next_envelope(CollectiveKind::all_gather, type);
  const std::vector<Index> begins = running_begins(counts);
  std::byte* whole = static_cast<std::byte*>(out);
  const Index own_bytes = counts[std::size_t(rank())] * element_size(type);
  if (own_bytes > 0) copy_own(whole + begins[std::size_t(rank())] * element_size(type), shard, own_bytes);
  gather_pieces(envelope, begins, type, whole);
}

void Communicator::reduce_scatter_of_messages(const void* in, const std::vector<Index>& counts, ElementType type,
                                              void* out) {
  const Envelope envelope = next_envelope(CollectiveKind::reduce_scatter, type);
  reduce_pieces(envelope, static_cast<const std::byte*>(in), running_begins(counts), type, out);
}

void Communicator::all_reduce_of_messages(void* values, Index count, ElementType type) {
  const Envelope envelope = next_envelope(CollectiveKind::all_reduce, type);
  std::vector<Index> begins;
  for (int r = 0; r < size(); ++r) begins.push_back(all_reduce_piece(r, size(), count).first);
  begins.push_back(count);
  std::byte* whole = static_cast<std::byte*>(values);
  void* own = whole ? whole + begins[std::size_t(rank())] * element_size(type) : nullptr;
  reduce_pieces(envelope, whole, begins, type, own);
  gather_pieces(envelope, begins, type, whole);
}

void Communicator::all_to_all_of_messages(const void* in, const std::vector<Index>& send_counts, void* out,
                                          const std::vector<Index>& recv_counts, ElementType type) {
  const Envelope envelope = next_envelope(CollectiveKind::all_to_all, type);
  const Index bytes = element_size(type);
  const std::vector<Index> send_begins = running_begins(send_counts);
  const std::vector<Index> recv_begins = running_begins(recv_counts);
  const auto sent_from = [&](int r) {
    return in ? static_cast<const std::byte*>(in) + send_begins[std::size_t(r)] * bytes : nullptr;
  };
  const auto received_at = [&](int r) {
    return out ? static_cast<std::byte*>(out) + recv_begins[std::size_t(r)] * bytes : nullptr;
  };
  copy_own(received_at(rank()), sent_from(rank()), send_counts[std::size_t(rank())] * bytes);
  std::vector<Outgoing> outgoing;
  std::vector<Incoming> incoming;
  for (int step = 1; step < size(); ++step) {
    const int to = (rank() + step) % size();
    const int from = (rank() + size() - step) % size();
    outgoing.push_back({to, sent_from(to), send_counts[std::size_t(to)] * bytes});
    incoming.push_back({from, received_at(from), recv_counts[std::size_t(from)] * bytes});
  }
  if (size() > 1) exchange(envelope, outgoing, incoming);
}

void Communicator::broadcast_of_messages(void* values, Index count, ElementType type, int root) {
  const Envelope envelope = next_envelope(CollectiveKind::broadcast, type, root);
  const Index bytes = count * element_size(type);
  if (size() == 1) return;
  if (rank() != root) {
    exchange(envelope, {}, {Incoming{root, values, bytes}});
    return;
  }
  std::vector<Outgoing> outgoing;
  for (int step = 1; step < size(); ++step) outgoing.push_back({(rank() + step) % size(), values, bytes});
  exchange(envelope, outgoing, {});
}

}  // namespace muonwalk
