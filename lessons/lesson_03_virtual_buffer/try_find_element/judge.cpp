#include <map>

#include "lesson_03_virtual_buffer.hpp"
#include "lessons/lesson_03_virtual_buffer/try_find_element/contract.hpp"
#include "sim/classroom/exercise.hpp"

namespace muonwalk::sim {
namespace {

const char* const kCoordinates[] = {"the TP rank", "the bucket", "the element of the bucket", "the DP rank",
                                    "the element of the shard"};

// For each coordinate of an address, a matrix of the shape of the parameter: what the address of its element (i, j) has
// there.
template <class Address5>
void add_coordinates(std::vector<NamedMatrix>& all, const DistMeta& meta, const Address5& address) {
  std::vector<NamedMatrix> matrices;
  for (const char* coordinate : kCoordinates)
    matrices.push_back({meta.name + ": " + coordinate, Matrix(meta.full_shape.rows, meta.full_shape.cols), 0, 0});
  for (Index i = 0; i < meta.full_shape.rows; ++i)
    for (Index j = 0; j < meta.full_shape.cols; ++j) {
      const std::vector<Index> five = address(i, j);
      for (std::size_t c = 0; c < five.size(); ++c) matrices[c].matrix(i, j) = static_cast<float>(five[c]);
    }
  for (NamedMatrix& matrix : matrices) all.push_back(std::move(matrix));
}

// Where every number of the lesson lies, looked up in the warehouse that the lesson lays by hand for each TP rank:
// number → TP rank, bucket, element of the bucket, DP rank, element of the shard.
std::map<std::pair<std::size_t, float>, std::vector<Index>> addresses_by_hand(RankInfo rank) {
  std::map<std::pair<std::size_t, float>, std::vector<Index>> found;
  for (rank.place.tp = 0; rank.place.tp < rank.grid.tp(); ++rank.place.tp) {
    const auto buffers = lesson_03::lay_by_hand(rank);
    for (std::size_t b = 0; b < buffers.size(); ++b)
      for (std::size_t k = 0; k < buffers[b].size(); ++k) {
        const Index shard = static_cast<Index>(buffers[b][k].size()) / rank.grid.dp();
        for (Index at = 0; at < static_cast<Index>(buffers[b][k].size()); ++at)  // the first TP rank that has it counts
          found.insert({{b, buffers[b][k][at]}, {rank.place.tp, static_cast<Index>(k), at, at / shard, at % shard}});
      }
  }
  return found;
}

Task find_element(FindElement* yours) {
  Task task;
  task.grids = {Grid().dp(2).tp(2), Grid().dp(4), Grid().dp(3)};
  task.prepare = [yours](Rank& rank) -> Answer {
    const Layout layout = lesson_03::plan_buffers(rank);
    return [=] {
      MemoryMeter uncounted;  // the addresses as matrices, for the comparison
      const MeterScope scope(uncounted);
      std::vector<NamedMatrix> all;
      for (const Buffer& buffer : layout.buffers)
        for (const DistMeta& meta : buffer.parameters)
          add_coordinates(all, meta, [&](Index i, Index j) {
            const Address a = yours(buffer, meta, i, j);
            return std::vector<Index>{a.tp_rank, a.bucket_idx, a.in_bucket, a.dp_rank, a.in_shard};
          });
      return all;
    };
  };
  task.reference = [](const RankInfo& info) {
    const auto addresses = addresses_by_hand(info);
    // Which number stands at (i, j) of a matrix shows where nothing is cut: one rank has all of it.
    RankInfo alone = info;
    alone.grid = Grid();
    alone.place = Place();
    const auto whole = lesson_03::lay_by_hand(alone);
    const Layout uncut = lesson_03::plan_buffers(alone);
    std::vector<NamedMatrix> all;
    for (std::size_t b = 0; b < uncut.buffers.size(); ++b)
      for (const DistMeta& meta : uncut.buffers[b].parameters) {
        const Index begin = meta.global_range.begin - uncut.buffers[b].buckets[meta.bucket_idx].range.begin;
        add_coordinates(all, meta, [&](Index i, Index j) {
          return addresses.at({b, whole[b][meta.bucket_idx][begin + i * meta.shape.cols + j]});
        });
      }
    return all;
  };
  // The right numbers of elements, counted from somewhere else.
  const auto reference = task.reference;
  task.looks = [reference](const RankInfo& info) {
    const Layout layout = lesson_03::plan_buffers(info);
    const std::vector<NamedMatrix> right = reference(info);
    std::vector<Look> looks;
    std::size_t first = 0;  // of the five matrices of a parameter
    for (const Buffer& buffer : layout.buffers)
      for (const DistMeta& meta : buffer.parameters) {
        Matrix in_buffer = right[first + 2].matrix;
        looks.push_back({"counted from the beginning of the bucket", in_buffer});
        const Index begin = buffer.buckets[meta.bucket_idx].range.begin;
        for (float& element : in_buffer.flat()) element += static_cast<float>(begin);
        if (begin > 0) looks.push_back({"counted from the beginning of the buffer", in_buffer});
        // The slice's own rows, however long, and what came of taking rows or columns of the whole for those of it.
        Matrix by_columns = right[first + 2].matrix, whole_rows = by_columns, whole_cols = by_columns;
        const Index at = meta.global_range.begin - begin, rows = meta.shape.rows, cols = meta.shape.cols;
        for (Index i = 0; i < meta.full_shape.rows; ++i)
          for (Index j = 0; j < meta.full_shape.cols; ++j) {
            by_columns(i, j) = static_cast<float>(at + j % cols * rows + i % rows);
            whole_rows(i, j) = static_cast<float>(at + i * cols + j % cols);
            whole_cols(i, j) = static_cast<float>(at + i % rows * cols + j);
          }
        const std::string of = meta.name + ": the element of the bucket";
        looks.push_back({"counted column by column; a slice lies row by row", by_columns, of});
        looks.push_back({"counted with the row of the whole matrix, not of the slice", whole_rows, of});
        looks.push_back({"counted with the column of the whole matrix, not of the slice", whole_cols, of});
        first += 5;
      }
    return looks;
  };
  task.plan = [](const RankInfo& info) { return Plan{info.grid, info.place, {}}; };
  return task;
}

const bool find_element_added = add_exercise("lesson_03_virtual_buffer", "find_element", find_element);

}  // namespace
}  // namespace muonwalk::sim
