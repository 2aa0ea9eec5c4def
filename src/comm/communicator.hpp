#pragma once

#include <string>
#include <vector>

#include "src/comm/ledger.hpp"
#include "src/numerics/matrix.hpp"

namespace muonwalk {

/// One rank's end of a group of ranks: what a lesson uses to talk. The typed calls below are the same for every
/// backend; a backend implements the protected virtual calls on raw memory (over messages: see point_to_point.hpp; NCCL
/// would map them to its own collectives and take device pointers).
///
/// Rules for all collectives: every rank of the group makes the same calls in the same order with matching sizes. Sizes
/// are checked first: a mismatch between ranks throws RunError with a sentence that names both sizes. Sums over ranks
/// are added as a balanced binary tree in rank order (tree_sum.hpp), never in the order in which messages arrive, in
/// float32 also for bfloat16. T is float, bfloat16 or std::byte (which can't be summed).
///
/// What a rank asks wrongly on its own (a negative count, a peer that does not exist, null memory, memory that overlaps
/// where it may not, a sum of bytes) throws std::invalid_argument before anything moves and before the ledger knows of
/// it.
class Communicator {
 public:
  virtual ~Communicator() = default;

  /// The name of the group, for example "dp".
  const std::string& group() const { return group_; }
  /// This rank's number in the group, 0 ≤ rank < size.
  int rank() const { return rank_; }
  /// The number of ranks in the group.
  int size() const { return size_; }

  /// Returns when every rank of the group has called it.
  void barrier();

  /// Sends `count` elements to `peer`; returns when the memory may be used again.
  template <class T>
  void send(const T* values, Index count, int peer);
  /// Receives exactly `count` elements from `peer`.
  template <class T>
  void recv(T* values, Index count, int peer);

  /// out (size · count) = the shards of all ranks in rank order. `shard` may lie at its own place in `out`.
  template <class T>
  void all_gather(const T* shard, Index count, T* out);
  /// The same, with shards of counts[r] elements each; out has their sum.
  template <class T>
  void all_gather_v(const T* shard, const std::vector<Index>& counts, T* out);
  /// in (size · count): out (count) = the sum over ranks of everyone's piece number rank(). `out` may be that piece of
  /// `in`.
  template <class T>
  void reduce_scatter(const T* in, Index count, T* out);
  /// The same, with pieces of counts[r] elements each: `in` has their sum, `out` has counts[rank()].
  template <class T>
  void reduce_scatter_v(const T* in, const std::vector<Index>& counts, T* out);
  /// values (count) = the sum over ranks, the same bits on every rank.
  template <class T>
  void all_reduce(T* values, Index count);
  /// send_counts[r] elements of `in` go to rank r (one run after the other), recv_counts[r] come from it into `out`.
  /// The two must not overlap, and a rank's own entries must be equal.
  template <class T>
  void all_to_all_v(const T* in, const std::vector<Index>& send_counts, T* out, const std::vector<Index>& recv_counts);
  /// values (count) = those of rank `root`.
  template <class T>
  void broadcast(T* values, Index count, int root);

  // The same calls on flat buffers, as lessons write them.

  /// The shards of all ranks in rank order: size · shard.size() elements.
  template <class T>
  FlatOf<T> all_gather(const FlatOf<T>& shard);
  /// The sum over ranks of piece number rank() of `values`. Throws RunError when size() does not divide values.size().
  template <class T>
  FlatOf<T> reduce_scatter(const FlatOf<T>& values);
  /// The sum over ranks.
  template <class T>
  FlatOf<T> all_reduce(FlatOf<T> values);

  /// What this rank has moved in this group (and in every group that shares the ledger).
  Ledger& ledger() { return *ledger_; }

  /// From now on `observer` is told of every call, after those that came before it. It must outlive the communicator.
  void observe(CallObserver& observer) { observers_.push_back(&observer); }

 protected:
  /// For backends: the group's name, this rank's number in it, its size, and where the traffic is counted.
  Communicator(std::string group, int rank, int size, Ledger& ledger);

  /// What a backend implements: the call of the same name on raw memory, with counts in elements of `type`. Arguments
  /// are checked and the ledger's entry is open when it is called; it throws RunError when something breaks on the way.
  /// @{
  virtual void do_barrier() = 0;
  virtual void do_send(const void* values, Index count, ElementType type, int peer) = 0;
  virtual void do_recv(void* values, Index count, ElementType type, int peer) = 0;
  virtual void do_all_gather_v(const void* shard, const std::vector<Index>& counts, ElementType type, void* out) = 0;
  virtual void do_reduce_scatter_v(const void* in, const std::vector<Index>& counts, ElementType type, void* out) = 0;
  virtual void do_all_reduce(void* values, Index count, ElementType type) = 0;
  virtual void do_all_to_all_v(const void* in, const std::vector<Index>& send_counts, void* out,
                               const std::vector<Index>& recv_counts, ElementType type) = 0;
  virtual void do_broadcast(void* values, Index count, ElementType type, int root) = 0;
  /// @}

 private:
  // The typed calls end here: check the arguments, open the ledger's entry, hand over to the backend.
  void checked_send(const void* values, Index count, ElementType type, int peer);
  void checked_recv(void* values, Index count, ElementType type, int peer);
  void checked_all_gather_v(const void* shard, const std::vector<Index>& counts, ElementType type, void* out);
  void checked_reduce_scatter_v(const void* in, const std::vector<Index>& counts, ElementType type, void* out);
  void checked_all_reduce(void* values, Index count, ElementType type);
  void checked_all_to_all_v(const void* in, const std::vector<Index>& send_counts, void* out,
                            const std::vector<Index>& recv_counts, ElementType type);
  void checked_broadcast(void* values, Index count, ElementType type, int root);
  Index piece_of(Index elements) const;
  // Opens the ledger's entry, tells the observers and does the work in between.
  template <class Work>
  void observed(CollectiveKind kind, ElementType type, Index in, Index out, int peer, const Work& work);

  std::string group_;
  int rank_;
  int size_;
  Ledger* ledger_;
  std::vector<CallObserver*> observers_;
};

}  // namespace muonwalk

#include "src/comm/communicator_inline.hpp"
