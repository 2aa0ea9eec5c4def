#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/recording/span_buffer.hpp"
#include "src/comm/point_to_point.hpp"

namespace muonwalk::sim {

/// A communicator that records each of its calls while the run is traced: one entry a call, however many exchanges it
/// is made of. The messages of an exchange are added by the transport.
class TracedCommunicator : public PointToPointCommunicator {
 public:
  /// `trace` may be filled after the communicator was made; it is empty where the run is not traced.
  TracedCommunicator(GroupKind kind, int rank, int size, Transport& transport, Ledger& ledger,
                     const std::unique_ptr<SpanBuffer>& trace)
      : PointToPointCommunicator(group_name(kind), rank, size, transport, ledger), kind_(kind), trace_(&trace) {}

 protected:
  void do_barrier() override;
  void do_send(const void* values, Index count, ElementType type, int peer) override;
  void do_recv(void* values, Index count, ElementType type, int peer) override;
  void do_all_gather_v(const void* shard, const std::vector<Index>& counts, ElementType type, void* out) override;
  void do_reduce_scatter_v(const void* in, const std::vector<Index>& counts, ElementType type, void* out) override;
  void do_all_reduce(void* values, Index count, ElementType type) override;
  void do_all_to_all_v(const void* in, const std::vector<Index>& send_counts, void* out,
                       const std::vector<Index>& recv_counts, ElementType type) override;
  void do_broadcast(void* values, Index count, ElementType type, int root) override;

 private:
  // Runs a call into which this rank puts so many elements, and out of which it gets so many.
  template <class Work>
  void traced(CollectiveKind collective, ElementType type, Index in, Index out, const Work& work);

  GroupKind kind_;
  const std::unique_ptr<SpanBuffer>* trace_;
};

}  // namespace muonwalk::sim
