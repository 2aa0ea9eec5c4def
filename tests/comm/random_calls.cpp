#include "tests/comm/random_calls.hpp"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "src/comm/predicted_traffic.hpp"

namespace muonwalk::testing {

namespace {

using Random = std::mt19937_64;

// Values over many magnitudes, so that another order of a sum shows in the bits.
float random_float(Random& random) {
  const float mantissa = std::uniform_real_distribution<float>(-1.0f, 1.0f)(random);
  return std::ldexp(mantissa, static_cast<int>(random() % 12));
}

void fill(Random& random, float& value) { value = random_float(random); }
void fill(Random& random, bfloat16& value) { value = bfloat16(random_float(random)); }
void fill(Random& random, std::byte& value) { value = static_cast<std::byte>(random() & 0xff); }

float sum(const std::vector<float>& leaves) {
  return tree_by_halving(leaves.data(), static_cast<Index>(leaves.size()));
}
bfloat16 sum(const std::vector<bfloat16>& leaves) {
  std::vector<float> wide;
  for (const bfloat16 leaf : leaves) wide.push_back(static_cast<float>(leaf));
  return bfloat16(sum(wide));
}
std::byte sum(const std::vector<std::byte>&) { return std::byte{0}; }

// One rank's part in the sequence. Every rank draws the same numbers, and so knows what every other rank holds.
template <class T>
class Player {
 public:
  Player(Communicator& communicator, Ledger& predicted, Random& random, Index largest)
      : communicator_(communicator), predicted_(predicted), random_(random), largest_(largest) {}

  // Empty, or what is wrong.
  std::string play(CollectiveKind kind) {
    switch (kind) {
      case CollectiveKind::barrier:
        communicator_.barrier();
        predict(kind, ElementType::bytes, barrier_traffic(size()));
        return "";
      case CollectiveKind::send:
      case CollectiveKind::recv:
        return pass_around();
      case CollectiveKind::all_gather:
        return random_() % 2 ? gather() : gather_v();
      case CollectiveKind::reduce_scatter:
        return random_() % 2 ? reduce_scatter() : reduce_scatter_v();
      case CollectiveKind::all_reduce:
        return all_reduce();
      case CollectiveKind::all_to_all:
        return all_to_all();
      case CollectiveKind::broadcast:
        return broadcast();
      case CollectiveKind::wait:
        break;  // random_transfers.cpp
    }
    return "unknown kind";
  }

 private:
  using Values = std::vector<T>;
  static constexpr ElementType type = ElementTypeOf<T>::value;

  int size() const { return communicator_.size(); }
  int rank() const { return communicator_.rank(); }
  Index random_count() { return random_() % 6 == 0 ? 0 : static_cast<Index>(random_() % std::uint64_t(largest_ + 1)); }

  Values random_values(Index count) {
    Values values(static_cast<std::size_t>(count));
    for (T& value : values) fill(random_, value);
    return values;
  }

  // What each rank holds.
  std::vector<Values> random_values_of_all(const std::vector<Index>& counts) {
    std::vector<Values> all;
    for (Index count : counts) all.push_back(random_values(count));
    return all;
  }
  std::vector<Index> same(Index count) const { return std::vector<Index>(static_cast<std::size_t>(size()), count); }
  std::vector<Index> random_counts() {
    std::vector<Index> counts;
    for (int r = 0; r < size(); ++r) counts.push_back(random_count());
    return counts;
  }

  void predict(CollectiveKind kind, ElementType line_type, const Traffic& traffic) {
    predicted_.add(communicator_.group(), kind, line_type, 1, traffic);
  }

  std::string compare(const Values& expected, const Values& got) const {
    if (expected.size() != got.size()) return "the number of elements differs";
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (std::memcmp(&expected[i], &got[i], sizeof(T)) != 0) return "element " + std::to_string(i) + " differs";
    }
    return "";
  }

  Values concatenated(const std::vector<Values>& parts) const {
    Values whole;
    for (const Values& part : parts) whole.insert(whole.end(), part.begin(), part.end());
    return whole;
  }

  // Memory for a result, full of what must not survive.
  Values room(Index count) {
    Values values(static_cast<std::size_t>(count));
    if (count > 0) std::memset(static_cast<void*>(values.data()), 0x5a, values.size() * sizeof(T));
    return values;
  }

  std::string pass_around() {
    // A ring of messages; even ranks send first, and with an odd number of ranks the last one is even as well.
    const Index count = random_count();
    const std::vector<Values> held = random_values_of_all(same(count));
    if (size() == 1) return "";
    const int to = (rank() + 1) % size();
    const int from = (rank() + size() - 1) % size();
    Values got = room(count);
    const auto send = [&] { communicator_.send(held[std::size_t(rank())].data(), count, to); };
    const auto receive = [&] { communicator_.recv(got.data(), count, from); };
    if (rank() % 2 == 0 && rank() + 1 < size()) {
      send();
      receive();
    } else {
      receive();
      send();
    }
    predict(CollectiveKind::send, type, send_traffic(count, type));
    predict(CollectiveKind::recv, type, recv_traffic(count, type));
    return compare(held[std::size_t(from)], got);
  }

  std::string gather() {
    const Index count = random_count();
    const std::vector<Values> held = random_values_of_all(same(count));
    Values got = room(count * size());
    T* own_place = got.data() + rank() * count;
    if (random_() % 2) {
      communicator_.all_gather(held[std::size_t(rank())].data(), count, got.data());
    } else {
      std::copy(held[std::size_t(rank())].begin(), held[std::size_t(rank())].end(), own_place);
      communicator_.all_gather(own_place, count, got.data());
    }
    predict(CollectiveKind::all_gather, type, all_gather_traffic(size(), count, type));
    return compare(concatenated(held), got);
  }

  std::string gather_v() {
    const std::vector<Index> counts = random_counts();
    const std::vector<Values> held = random_values_of_all(counts);
    Values got = room(std::accumulate(counts.begin(), counts.end(), Index{0}));
    communicator_.all_gather_v(held[std::size_t(rank())].data(), counts, got.data());
    predict(CollectiveKind::all_gather, type, all_gather_v_traffic(rank(), counts, type));
    return compare(concatenated(held), got);
  }

  // Element `i` of every rank, added up.
  T sum_at(const std::vector<Values>& held, Index i) const {
    Values leaves;
    for (const Values& values : held) leaves.push_back(values[std::size_t(i)]);
    return sum(leaves);
  }

  std::string reduce_scatter() {
    const Index count = random_count();
    std::vector<Values> held = random_values_of_all(same(count * size()));
    Values expected;
    for (Index i = 0; i < count; ++i) expected.push_back(sum_at(held, rank() * count + i));
    Values& mine = held[std::size_t(rank())];
    Values got = room(count);
    if (random_() % 2) {
      communicator_.reduce_scatter(mine.data(), count, got.data());
    } else {
      T* own_place = mine.data() + rank() * count;
      communicator_.reduce_scatter(mine.data(), count, own_place);
      got.assign(own_place, own_place + count);
    }
    predict(CollectiveKind::reduce_scatter, type, reduce_scatter_traffic(size(), count, type));
    return compare(expected, got);
  }

  std::string reduce_scatter_v() {
    const std::vector<Index> counts = random_counts();
    const auto before = [&](int r) { return std::accumulate(counts.begin(), counts.begin() + r, Index{0}); };
    std::vector<Values> held = random_values_of_all(same(before(size())));
    Values expected;
    for (Index i = before(rank()); i < before(rank() + 1); ++i) expected.push_back(sum_at(held, i));
    Values& mine = held[std::size_t(rank())];
    T* own_place = mine.data() + before(rank());
    Values got = room(counts[std::size_t(rank())]);
    const bool in_place = random_() % 2;
    communicator_.reduce_scatter_v(mine.data(), counts, in_place ? own_place : got.data());
    if (in_place) got.assign(own_place, own_place + got.size());
    predict(CollectiveKind::reduce_scatter, type, reduce_scatter_v_traffic(rank(), counts, type));
    return compare(expected, got);
  }

  std::string all_reduce() {
    const Index count = random_count();
    const std::vector<Values> held = random_values_of_all(same(count));
    Values expected;
    for (Index i = 0; i < count; ++i) expected.push_back(sum_at(held, i));
    Values got = held[std::size_t(rank())];
    communicator_.all_reduce(got.data(), count);
    predict(CollectiveKind::all_reduce, type, all_reduce_traffic(rank(), size(), count, type));
    return compare(expected, got);
  }

  std::string all_to_all() {
    // counts[from][to]
    std::vector<std::vector<Index>> counts;
    for (int r = 0; r < size(); ++r) counts.push_back(random_counts());
    std::vector<std::vector<Values>> held;
    for (const std::vector<Index>& row : counts) held.push_back(random_values_of_all(row));
    std::vector<Index> arriving;
    Values expected;
    for (int from = 0; from < size(); ++from) {
      const Values& part = held[std::size_t(from)][std::size_t(rank())];
      arriving.push_back(static_cast<Index>(part.size()));
      expected.insert(expected.end(), part.begin(), part.end());
    }
    const Values mine = concatenated(held[std::size_t(rank())]);
    Values got = room(static_cast<Index>(expected.size()));
    communicator_.all_to_all_v(mine.data(), counts[std::size_t(rank())], got.data(), arriving);
    predict(CollectiveKind::all_to_all, type,
            all_to_all_v_traffic(rank(), counts[std::size_t(rank())], arriving, type));
    return compare(expected, got);
  }

  std::string broadcast() {
    const Index count = random_count();
    const int root = static_cast<int>(random_() % std::uint64_t(size()));
    const Values expected = random_values(count);
    Values got = rank() == root ? expected : room(count);
    communicator_.broadcast(got.data(), count, root);
    predict(CollectiveKind::broadcast, type, broadcast_traffic(rank(), root, size(), count, type));
    return compare(expected, got);
  }

  Communicator& communicator_;
  Ledger& predicted_;
  Random& random_;
  Index largest_;
};

}  // namespace

float tree_by_halving(const float* leaves, Index count) {
  if (count == 0) return 0.0f;
  if (count == 1) return leaves[0];
  Index half = 1;
  while (2 * half < count) half *= 2;
  return tree_by_halving(leaves, half) + tree_by_halving(leaves + half, count - half);
}

std::string make_random_calls(Communicator& communicator, const RandomCalls& settings) {
  Random random(settings.seed);
  Ledger predicted;
  for (int call = 0; call < settings.calls; ++call) {
    const auto kind = static_cast<CollectiveKind>(random() % 8);
    const bool sums = kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_reduce;
    const std::uint64_t type = random() % (sums ? 2 : 3);
    std::string wrong;
    if (type == 0) wrong = Player<float>(communicator, predicted, random, settings.largest).play(kind);
    if (type == 1) wrong = Player<bfloat16>(communicator, predicted, random, settings.largest).play(kind);
    if (type == 2) wrong = Player<std::byte>(communicator, predicted, random, settings.largest).play(kind);
    if (wrong.empty()) wrong = first_difference(predicted, communicator.ledger());
    if (!wrong.empty()) {
      return std::string("call ") + std::to_string(call) + ", " + collective_name(kind) + " with element type number " +
             std::to_string(type) + ", seed " + std::to_string(settings.seed) + ": " + wrong;
    }
  }
  // Nobody leaves while another still waits for a message of the last call.
  communicator.barrier();
  return "";
}

}  // namespace muonwalk::testing
