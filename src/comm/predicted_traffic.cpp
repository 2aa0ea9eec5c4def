#include "src/comm/predicted_traffic.hpp"

#include <cstddef>
#include <numeric>
#include <stdexcept>
#include <string>

namespace muonwalk {

namespace {

void check_group(int rank, int size) {
  if (size < 1 || rank < 0 || rank >= size) {
    throw std::invalid_argument("traffic was to be predicted for rank " + std::to_string(rank) + " of " +
                                std::to_string(size) + ", but ranks go from 0 to size − 1");
  }
}

}  // namespace

Traffic barrier_traffic(int size) {
  check_group(0, size);
  Traffic traffic;
  for (int reach = 1; reach < size; reach *= 2) traffic += {0, 0, 1, 1};
  return traffic;
}

Traffic all_gather_traffic(int size, Index shard_elements, ElementType type) {
  check_group(0, size);
  const std::int64_t bytes = (size - 1) * shard_elements * element_size(type);
  return {bytes, bytes, size - 1, size - 1};
}

Traffic all_gather_v_traffic(int rank, const std::vector<Index>& shard_elements, ElementType type) {
  const int size = static_cast<int>(shard_elements.size());
  check_group(rank, size);
  const Index total = std::accumulate(shard_elements.begin(), shard_elements.end(), Index{0});
  const Index own = shard_elements[static_cast<std::size_t>(rank)], bytes = element_size(type);
  return {(size - 1) * own * bytes, (total - own) * bytes, size - 1, size - 1};
}

Traffic reduce_scatter_traffic(int size, Index piece_elements, ElementType type) {
  // The mirror image of the all-gather: what goes out there comes in here, and both are (n − 1) pieces.
  return all_gather_traffic(size, piece_elements, type);
}

Traffic reduce_scatter_v_traffic(int rank, const std::vector<Index>& piece_elements, ElementType type) {
  Traffic traffic = all_gather_v_traffic(rank, piece_elements, type);
  std::swap(traffic.bytes_sent, traffic.bytes_received);
  return traffic;
}

std::pair<Index, Index> all_reduce_piece(int rank, int size, Index elements) {
  check_group(rank, size);
  // ⌊r · elements / n⌋ without the product r · elements, which could overflow.
  const Index quotient = elements / size;
  const Index remainder = elements % size;
  const auto begin = [&](Index r) { return r * quotient + r * remainder / size; };
  return {begin(rank), begin(rank + 1)};
}

Traffic all_reduce_traffic(int rank, int size, Index elements, ElementType type) {
  const std::pair<Index, Index> piece = all_reduce_piece(rank, size, elements);
  const Index own = piece.second - piece.first;
  // First everyone else's pieces go out and n − 1 copies of its own come in; then it is the other way round. Of two
  // ranks it is all elements, at once.
  const std::int64_t bytes = ((elements - own) + (size - 1) * own) * element_size(type);
  const int messages = size == 2 ? 1 : 2 * (size - 1);
  return {bytes, bytes, messages, messages};
}

Traffic all_to_all_v_traffic(int rank, const std::vector<Index>& send_counts, const std::vector<Index>& recv_counts,
                             ElementType type) {
  const int size = static_cast<int>(send_counts.size());
  check_group(rank, size);
  if (recv_counts.size() != send_counts.size()) {
    throw std::invalid_argument("an all_to_all_v needs as many counts to receive as to send, but there are " +
                                std::to_string(recv_counts.size()) + " and " + std::to_string(send_counts.size()));
  }
  Traffic traffic;
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    traffic += send_traffic(send_counts[static_cast<std::size_t>(peer)], type);
    traffic += recv_traffic(recv_counts[static_cast<std::size_t>(peer)], type);
  }
  return traffic;
}

Traffic broadcast_traffic(int rank, int root, int size, Index elements, ElementType type) {
  check_group(rank, size);
  check_group(root, size);
  if (rank != root) return recv_traffic(elements, type);
  return {(size - 1) * elements * element_size(type), 0, size - 1, 0};
}

Traffic send_traffic(Index elements, ElementType type) { return {elements * element_size(type), 0, 1, 0}; }

Traffic recv_traffic(Index elements, ElementType type) { return {0, elements * element_size(type), 0, 1}; }

}  // namespace muonwalk
