#pragma once

// The typed calls of communicator.hpp, which includes this file: each names its element type and goes on untyped.

namespace muonwalk {

template <class T>
void Communicator::send(const T* values, Index count, int peer) {
  checked_send(values, count, ElementTypeOf<T>::value, peer);
}

template <class T>
void Communicator::recv(T* values, Index count, int peer) {
  checked_recv(values, count, ElementTypeOf<T>::value, peer);
}

template <class T>
void Communicator::all_gather(const T* shard, Index count, T* out) {
  checked_all_gather_v(shard, std::vector<Index>(static_cast<std::size_t>(size()), count), ElementTypeOf<T>::value,
                       out);
}

template <class T>
void Communicator::all_gather_v(const T* shard, const std::vector<Index>& counts, T* out) {
  checked_all_gather_v(shard, counts, ElementTypeOf<T>::value, out);
}

template <class T>
void Communicator::reduce_scatter(const T* in, Index count, T* out) {
  checked_reduce_scatter_v(in, std::vector<Index>(static_cast<std::size_t>(size()), count), ElementTypeOf<T>::value,
                           out);
}

template <class T>
void Communicator::reduce_scatter_v(const T* in, const std::vector<Index>& counts, T* out) {
  checked_reduce_scatter_v(in, counts, ElementTypeOf<T>::value, out);
}

template <class T>
void Communicator::all_reduce(T* values, Index count) {
  checked_all_reduce(values, count, ElementTypeOf<T>::value);
}

template <class T>
void Communicator::all_to_all_v(const T* in, const std::vector<Index>& send_counts, T* out,
                                const std::vector<Index>& recv_counts) {
  checked_all_to_all_v(in, send_counts, out, recv_counts, ElementTypeOf<T>::value);
}

template <class T>
void Communicator::broadcast(T* values, Index count, int root) {
  checked_broadcast(values, count, ElementTypeOf<T>::value, root);
}

template <class T>
FlatOf<T> Communicator::all_gather(const FlatOf<T>& shard) {
  FlatOf<T> out(shard.size() * static_cast<std::size_t>(size()));
  all_gather(shard.data(), static_cast<Index>(shard.size()), out.data());
  return out;
}

template <class T>
FlatOf<T> Communicator::reduce_scatter(const FlatOf<T>& values) {
  const Index piece = piece_of(static_cast<Index>(values.size()));
  FlatOf<T> out(static_cast<std::size_t>(piece));
  reduce_scatter(values.data(), piece, out.data());
  return out;
}

template <class T>
FlatOf<T> Communicator::all_reduce(FlatOf<T> values) {
  all_reduce(values.data(), static_cast<Index>(values.size()));
  return values;
}

}  // namespace muonwalk
