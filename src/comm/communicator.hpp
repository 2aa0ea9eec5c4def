#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/comm/backend.hpp"
#include "src/comm/call.hpp"
#include "src/comm/ledger.hpp"
#include "src/numerics/matrix.hpp"

namespace muonwalk {

/// A message that was posted with isend or irecv and is under way until `wait` returns. Until then its memory stays.
///
/// Every transfer is waited for. One that is dropped without is an error, whether or not the message has arrived:
/// nobody could tell when its memory is free. It breaks the group, and the next call there says so, or, in a lesson,
/// the end of the step. A transfer must not outlive its communicator.
class Transfer {
 public:
  Transfer(Transfer&&) noexcept;
  Transfer& operator=(Transfer&&) noexcept;
  ~Transfer();

  /// Returns when the message has been taken by its receiver (of an isend) or has arrived (of an irecv). A second wait
  /// throws std::logic_error.
  void wait();

 private:
  friend class Communicator;
  struct State;
  explicit Transfer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// One rank's end of a group of ranks: what a lesson uses to talk. It checks what it is asked for, counts what moves
/// and tells its observers; the bytes are moved by a Backend (backend.hpp). The collectives are made of messages
/// (collectives.cpp), which the backend moves one by one, or together where it has an Exchanger.
///
/// Rules for all collectives: every rank of the group makes the same calls in the same order with matching sizes. Sizes
/// are checked first: a mismatch between ranks throws RunError with a sentence that names both sizes. Sums over ranks
/// are added as a balanced binary tree in rank order (tree_sum.hpp), never in the order in which messages arrive, in
/// float32 also for bfloat16. T is float, bfloat16 or std::byte (which can't be summed).
///
/// What a rank asks wrongly on its own (a negative count, a peer that does not exist, null memory, memory that overlaps
/// where it may not, a sum of bytes) throws std::invalid_argument before anything moves and before the ledger knows of
/// it. Any other error breaks the group: every later call on it throws RunError that gives the first reason.
class Communicator {
 public:
  /// `backend`, and `ledger`, in which the traffic is counted, must outlive it.
  Communicator(std::string group, int rank, int size, Backend& backend, Ledger& ledger);
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  const std::string& group() const { return group_; }
  int rank() const { return rank_; }
  int size() const { return size_; }

  /// Returns when every rank of the group has called it.
  void barrier();

  /// Sends `count` elements to `peer` and returns when `peer` has taken them, which means that it has called the recv
  /// or irecv that they are for. This is so at all sizes and on every backend: whether a program works never depends on
  /// whether a message happens to fit into some buffer. Two ranks that both send first and then receive wait for each
  /// other forever. What works is isend, recv, and then wait.
  template <class T>
  void send(const T* values, Index count, int peer) {
    send_or_receive(checked_message(CollectiveKind::send, values, count, ElementTypeOf<T>::value, peer), values,
                    nullptr);
  }
  /// Receives exactly `count` elements from `peer`. What is sent from one rank to another is received in the order in
  /// which it was sent, whatever collectives are called in between.
  template <class T>
  void recv(T* values, Index count, int peer) {
    send_or_receive(checked_message(CollectiveKind::recv, values, count, ElementTypeOf<T>::value, peer), nullptr,
                    values);
  }

  /// A send and a receive that return at once and are waited for later. Any number may be under way, in both
  /// directions and in the middle of collectives; they are matched in the order in which they were posted and may be
  /// waited for in any. A posted transfer may be taken by a blocking call, and the other way round.
  /// @{
  template <class T>
  Transfer isend(const T* values, Index count, int peer) {
    return transfer(checked_message(CollectiveKind::send, values, count, ElementTypeOf<T>::value, peer), values,
                    nullptr);
  }
  template <class T>
  Transfer irecv(T* values, Index count, int peer) {
    return transfer(checked_message(CollectiveKind::recv, values, count, ElementTypeOf<T>::value, peer), nullptr,
                    values);
  }
  /// @}

  /// out (size · count) = the shards of all ranks in rank order. `shard` may lie at its own place in `out`.
  template <class T>
  void all_gather(const T* shard, Index count, T* out) {
    all_gather_v(shard, equal_counts(count), out);
  }
  /// The shard of rank r has counts[r] elements, and `out` has room for all of them.
  template <class T>
  void all_gather_v(const T* shard, const std::vector<Index>& counts, T* out) {
    checked_all_gather_v(shard, counts, ElementTypeOf<T>::value, out);
  }
  /// in (size · count): out (count) = the sum over ranks of everyone's piece number rank(). `out` may be that piece of
  /// `in`.
  template <class T>
  void reduce_scatter(const T* in, Index count, T* out) {
    reduce_scatter_v(in, equal_counts(count), out);
  }
  /// The piece of rank r has counts[r] elements: `in` has all of them, `out` has room for counts[rank()].
  template <class T>
  void reduce_scatter_v(const T* in, const std::vector<Index>& counts, T* out) {
    checked_reduce_scatter_v(in, counts, ElementTypeOf<T>::value, out);
  }
  /// values (count) = the sum over ranks, the same bits on every rank.
  template <class T>
  void all_reduce(T* values, Index count) {
    checked_all_reduce(values, count, ElementTypeOf<T>::value);
  }
  /// send_counts[r] elements of `in` go to rank r (one range after the other), recv_counts[r] come from it into `out`.
  /// The two must not overlap, and a rank's own entries must be equal.
  template <class T>
  void all_to_all_v(const T* in, const std::vector<Index>& send_counts, T* out, const std::vector<Index>& recv_counts) {
    checked_all_to_all_v(in, send_counts, out, recv_counts, ElementTypeOf<T>::value);
  }
  /// values (count) = those of rank `root`.
  template <class T>
  void broadcast(T* values, Index count, int root) {
    checked_broadcast(values, count, ElementTypeOf<T>::value, root);
  }

  // Calls on flat buffers, as lessons write them.

  /// The shards of all ranks in rank order: size · shard.size() elements.
  template <class T>
  FlatOf<T> all_gather(const FlatOf<T>& shard) {
    FlatOf<T> out(shard.size() * static_cast<std::size_t>(size()));
    all_gather(shard.data(), static_cast<Index>(shard.size()), out.data());
    return out;
  }
  /// The sum over ranks of piece number rank() of `values`. Throws RunError when size() does not divide values.size().
  template <class T>
  FlatOf<T> reduce_scatter(const FlatOf<T>& values) {
    FlatOf<T> out(static_cast<std::size_t>(piece_of(static_cast<Index>(values.size()))));
    reduce_scatter(values.data(), static_cast<Index>(out.size()), out.data());
    return out;
  }
  template <class T>
  FlatOf<T> all_reduce(FlatOf<T> values) {
    all_reduce(values.data(), static_cast<Index>(values.size()));
    return values;
  }

  /// What this rank has moved, in this group and in every other one that shares the ledger.
  Ledger& ledger() { return *ledger_; }
  Backend& backend() { return *backend_; }

  /// From now on `observer` is told of every call, after those that came before it. It must outlive the communicator.
  void observe(CallObserver& observer) { observers_.push_back(&observer); }

  /// Throws RunError, with the first reason, when the group is broken: a call has failed, or a transfer was dropped.
  void require_whole() const;

 private:
  friend class Transfer;
  struct Posted;

  // The typed calls end here. They check the arguments, open the ledger's entry, tell the observers, and go on to the
  // collective that is made of messages.
  Call checked_message(CollectiveKind kind, const void* values, Index count, ElementType type, int peer) const;
  void checked_all_gather_v(const void* shard, const std::vector<Index>& counts, ElementType type, void* out);
  void checked_reduce_scatter_v(const void* in, const std::vector<Index>& counts, ElementType type, void* out);
  void checked_all_reduce(void* values, Index count, ElementType type);
  void checked_all_to_all_v(const void* in, const std::vector<Index>& send_counts, void* out,
                            const std::vector<Index>& recv_counts, ElementType type);
  void checked_broadcast(void* values, Index count, ElementType type, int root);
  Index piece_of(Index elements) const;
  std::vector<Index> equal_counts(Index count) const {
    return std::vector<Index>(static_cast<std::size_t>(size_), count);
  }

  // Does the work of a call between the ledger's entry and the observers.
  template <class Work>
  void observed(const Call& call, const Work& work);
  // The same for a collective, which gets a number, and whose messages may have been moved by an Exchanger.
  template <class Work>
  void collective(const Call& call, const Work& of_messages);
  // Does work on the backend. Whatever goes wrong there breaks the group.
  template <class Work>
  void guarded(const Work& work);
  void break_group(const std::string& reason);

  // Posting messages, waiting for them and counting them (messages.cpp).
  Message next_message(const Envelope& envelope, bool sent, const Exchange::Part& part);
  Posted post(const Envelope& envelope, bool sent, const Exchange::Part& part);
  Posted post(const Call& call, const void* from, void* to);
  void wait(CollectiveKind kind, Posted& posted);
  void tell(const Call& call, const Message& message) const;
  void exchange(const Exchange& all);
  void exchange_together(Exchanger& exchanger, const Exchange& all);
  void send_or_receive(const Call& call, const void* from, void* to);
  Transfer transfer(const Call& call, const void* from, void* to);
  void finish(Transfer::State& state);
  void drop(const Transfer::State& state);

  // The collectives, written plainly as messages (collectives.cpp).
  void barrier_of_messages(const Envelope& envelope);
  void all_reduce_of_messages(const Envelope& envelope, void* values, Index count);
  void all_to_all_of_messages(const Envelope& envelope, const void* in, const std::vector<Index>& send_counts,
                              void* out, const std::vector<Index>& recv_counts);
  void broadcast_of_messages(const Envelope& envelope, void* values, Index count);
  void gather_pieces(const Envelope& envelope, const void* shard, const std::vector<Index>& counts, void* out);
  void reduce_pieces(const Envelope& envelope, const void* in, const std::vector<Index>& counts, void* out);
  template <class PieceOf>
  void sum_pieces(const Envelope& envelope, const PieceOf& piece_of, void* out);

  std::string group_;
  int rank_;
  int size_;
  Backend* backend_;
  Ledger* ledger_;
  std::vector<CallObserver*> observers_;
  const Call* current_ = nullptr;  // the call that is being made, and its line in the ledger
  std::size_t line_ = 0;
  std::string broken_;            // why; empty while the group is whole
  std::int64_t collectives_ = 0;  // made so far
  // How many messages were posted: [from rank to rank or of collectives][in or out][peer].
  std::vector<std::int64_t> numbers_[2][2];
  std::vector<std::byte> scratch_;       // room for what is to be summed; grows as needed
  std::vector<Message> moved_together_;  // by an Exchanger, in the call that is being made
};

}  // namespace muonwalk
