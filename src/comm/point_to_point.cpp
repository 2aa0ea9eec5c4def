#include "src/comm/point_to_point.hpp"

#include <cstring>

#include "src/comm/predicted_traffic.hpp"
#include "src/numerics/tree_sum.hpp"

namespace muonwalk {

namespace {

using Outgoing = Transport::Outgoing;
using Incoming = Transport::Incoming;

// counts[0], counts[0] + counts[1], …: where each rank's run begins, and at the end their sum.
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

std::string call_text(const Transport::Call& call, std::int64_t bytes) {
  std::string text = collective_name(call.kind);
  if (call.kind == CollectiveKind::broadcast) text += " from root " + std::to_string(call.root);
  if (call.kind != CollectiveKind::barrier) {
    text += std::string(" of ") + element_name(call.type) + " with " + std::to_string(bytes) + " bytes";
  }
  return text + " (after " + std::to_string(call.number) + " collectives)";
}

// What rank `peer` does in the same call: a send here is a recv there.
bool belong_together(const Transport::Call& mine, const Transport::Call& theirs) {
  const bool kinds = mine.kind == CollectiveKind::recv ? theirs.kind == CollectiveKind::send : mine.kind == theirs.kind;
  return kinds && mine.type == theirs.type && mine.number == theirs.number && mine.root == theirs.root;
}

}  // namespace

std::string Transport::mismatch(const std::string& group, int rank, const Call& call, std::int64_t bytes, int peer,
                                const Call& peer_call, std::int64_t peer_bytes) {
  if (belong_together(call, peer_call) && bytes == peer_bytes) return "";
  return "the ranks of group " + group + " do not make the same calls: rank " + std::to_string(rank) + " is in " +
         call_text(call, bytes) + " from rank " + std::to_string(peer) + ", which sent for " +
         call_text(peer_call, peer_bytes) +
         "; all ranks must make the same calls in the same order with the same sizes";
}

PointToPointCommunicator::PointToPointCommunicator(std::string group, int rank, int size, Transport& transport,
                                                   Ledger& ledger)
    : Communicator(std::move(group), rank, size, ledger), transport_(&transport) {}

Transport::Call PointToPointCommunicator::collective(CollectiveKind kind, ElementType type, int root) {
  Transport::Call call = message(kind, type);
  call.root = root;
  ++collectives_;
  return call;
}

Transport::Call PointToPointCommunicator::message(CollectiveKind kind, ElementType type) const {
  Transport::Call call;
  call.kind = kind;
  call.type = type;
  call.number = collectives_;
  return call;
}

// A dissemination barrier: in round k a rank hears from the one 2^k before it, which by then has heard from 2^k others.
void PointToPointCommunicator::do_barrier() {
  const Transport::Call call = collective(CollectiveKind::barrier, ElementType::bytes);
  for (int reach = 1; reach < size(); reach *= 2) {
    const int to = (rank() + reach) % size();
    const int from = (rank() + size() - reach) % size();
    transport_->exchange(call, {Outgoing{to, nullptr, 0}}, {Incoming{from, nullptr, 0}}, ledger());
  }
}

void PointToPointCommunicator::do_send(const void* values, Index count, ElementType type, int peer) {
  transport_->exchange(message(CollectiveKind::send, type), {Outgoing{peer, values, count * element_size(type)}}, {},
                       ledger());
}

void PointToPointCommunicator::do_recv(void* values, Index count, ElementType type, int peer) {
  transport_->exchange(message(CollectiveKind::recv, type), {}, {Incoming{peer, values, count * element_size(type)}},
                       ledger());
}

void PointToPointCommunicator::gather_pieces(const Transport::Call& call, const std::vector<Index>& begins,
                                             ElementType type, std::byte* out) {
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
  if (size() > 1) transport_->exchange(call, outgoing, incoming, ledger());
}

void PointToPointCommunicator::reduce_pieces(const Transport::Call& call, const std::byte* in,
                                             const std::vector<Index>& begins, ElementType type, void* out) {
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
  if (size() > 1) transport_->exchange(call, outgoing, incoming, ledger());
  const Index count = own_bytes / bytes;
  if (count == 0) return;
  if (type == ElementType::float32) {
    add_parts<float>(parts, count, out);
  } else {
    add_parts<bfloat16>(parts, count, out);
  }
}

void PointToPointCommunicator::do_all_gather_v(const void* shard, const std::vector<Index>& counts, ElementType type,
                                               void* out) {
  const Transport::Call call = collective(CollectiveKind::all_gather, type);
  const std::vector<Index> begins = running_begins(counts);
  std::byte* whole = static_cast<std::byte*>(out);
  const Index own_bytes = counts[std::size_t(rank())] * element_size(type);
  if (own_bytes > 0) copy_own(whole + begins[std::size_t(rank())] * element_size(type), shard, own_bytes);
  gather_pieces(call, begins, type, whole);
}

void PointToPointCommunicator::do_reduce_scatter_v(const void* in, const std::vector<Index>& counts, ElementType type,
                                                   void* out) {
  const Transport::Call call = collective(CollectiveKind::reduce_scatter, type);
  reduce_pieces(call, static_cast<const std::byte*>(in), running_begins(counts), type, out);
}

void PointToPointCommunicator::do_all_reduce(void* values, Index count, ElementType type) {
  const Transport::Call call = collective(CollectiveKind::all_reduce, type);
  std::vector<Index> begins;
  for (int r = 0; r < size(); ++r) begins.push_back(all_reduce_piece(r, size(), count).first);
  begins.push_back(count);
  std::byte* whole = static_cast<std::byte*>(values);
  void* own = whole ? whole + begins[std::size_t(rank())] * element_size(type) : nullptr;
  reduce_pieces(call, whole, begins, type, own);
  gather_pieces(call, begins, type, whole);
}

void PointToPointCommunicator::do_all_to_all_v(const void* in, const std::vector<Index>& send_counts, void* out,
                                               const std::vector<Index>& recv_counts, ElementType type) {
  const Transport::Call call = collective(CollectiveKind::all_to_all, type);
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
  if (size() > 1) transport_->exchange(call, outgoing, incoming, ledger());
}

void PointToPointCommunicator::do_broadcast(void* values, Index count, ElementType type, int root) {
  const Transport::Call call = collective(CollectiveKind::broadcast, type, root);
  const Index bytes = count * element_size(type);
  if (size() == 1) return;
  if (rank() != root) {
    transport_->exchange(call, {}, {Incoming{root, values, bytes}}, ledger());
    return;
  }
  std::vector<Outgoing> outgoing;
  for (int step = 1; step < size(); ++step) outgoing.push_back({(rank() + step) % size(), values, bytes});
  transport_->exchange(call, outgoing, {}, ledger());
}

}  // namespace muonwalk
