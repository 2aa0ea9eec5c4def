#include "sim/cluster/traced_communicator.hpp"

#include <numeric>

namespace muonwalk::sim {
namespace {

Index sum(const std::vector<Index>& counts) { return std::accumulate(counts.begin(), counts.end(), Index{0}); }

}  // namespace

// Where a call throws, the run has failed and leaves no trace, so nothing is closed.
template <class Work>
void TracedCommunicator::traced(CollectiveKind collective, ElementType type, Index in, Index out, const Work& work) {
  SpanBuffer* trace = trace_->get();
  if (trace == nullptr) return work();
  const auto entry = trace->open_call(kind_, collective, type, in, out);
  work();
  trace->close(entry);
}

void TracedCommunicator::do_barrier() {
  traced(CollectiveKind::barrier, ElementType::bytes, 0, 0, [&] { PointToPointCommunicator::do_barrier(); });
}

void TracedCommunicator::do_send(const void* values, Index count, ElementType type, int peer) {
  traced(CollectiveKind::send, type, count, 0, [&] { PointToPointCommunicator::do_send(values, count, type, peer); });
}

void TracedCommunicator::do_recv(void* values, Index count, ElementType type, int peer) {
  traced(CollectiveKind::recv, type, 0, count, [&] { PointToPointCommunicator::do_recv(values, count, type, peer); });
}

void TracedCommunicator::do_all_gather_v(const void* shard, const std::vector<Index>& counts, ElementType type,
                                         void* out) {
  traced(CollectiveKind::all_gather, type, counts[static_cast<std::size_t>(rank())], sum(counts),
         [&] { PointToPointCommunicator::do_all_gather_v(shard, counts, type, out); });
}

void TracedCommunicator::do_reduce_scatter_v(const void* in, const std::vector<Index>& counts, ElementType type,
                                             void* out) {
  traced(CollectiveKind::reduce_scatter, type, sum(counts), counts[static_cast<std::size_t>(rank())],
         [&] { PointToPointCommunicator::do_reduce_scatter_v(in, counts, type, out); });
}

void TracedCommunicator::do_all_reduce(void* values, Index count, ElementType type) {
  traced(CollectiveKind::all_reduce, type, count, count,
         [&] { PointToPointCommunicator::do_all_reduce(values, count, type); });
}

void TracedCommunicator::do_all_to_all_v(const void* in, const std::vector<Index>& send_counts, void* out,
                                         const std::vector<Index>& recv_counts, ElementType type) {
  traced(CollectiveKind::all_to_all, type, sum(send_counts), sum(recv_counts),
         [&] { PointToPointCommunicator::do_all_to_all_v(in, send_counts, out, recv_counts, type); });
}

void TracedCommunicator::do_broadcast(void* values, Index count, ElementType type, int root) {
  traced(CollectiveKind::broadcast, type, count, count,
         [&] { PointToPointCommunicator::do_broadcast(values, count, type, root); });
}

}  // namespace muonwalk::sim
