#include "lesson_12_matched_rms.hpp"
#include "lessons/lesson_12_matched_rms/tables.hpp"
#include "lessons/lesson_12_matched_rms/try_monitor_rms/contract.hpp"
#include "sim/classroom/exercise.hpp"
#include "src/numerics/philox.hpp"

namespace muonwalk::sim {
namespace {

Layout layout_without_tp(const RankInfo& rank) {
  LayoutOptions options;
  options.ownership = Ownership::buffer;  // so that of some matrices a rank owns nothing
  return plan_layout(lesson_12::kMatrices, rank.grid, options);
}

// Matrices whose elements are not all of one size: a rank's own part says little about the whole.
Matrix matrix_of(const DistMeta& meta) {
  Matrix matrix = random_matrix({1, static_cast<std::uint64_t>(meta.parameter)}, meta.shape.rows, meta.shape.cols);
  for (Index i = 0; i < matrix.size(); ++i)
    matrix.data()[i] *= 1 + 4 * static_cast<float>(i) / static_cast<float>(matrix.size());
  return matrix;
}

Flat part_of(const Layout& layout, const DistMeta& meta, int dp_rank) {
  return dp_shard(matrix_of(meta), layout, meta, dp_rank);
}

double own_rms(const Flat& part) { return rms_of(Matrix(1, static_cast<Index>(part.size()), part)); }

Matrix wanted_of(const RankInfo& rank) {
  Flat wanted;
  const Layout layout = layout_without_tp(rank);
  for (const DistMeta& meta : layout.buffers[0].parameters)
    wanted.push_back(static_cast<float>(rms_of(matrix_of(meta))));
  const Index count = static_cast<Index>(wanted.size());
  return Matrix(1, count, wanted);
}

Task monitor_rms(MonitorRms* yours) {
  Task task;
  task.grids = {Grid().dp(4), Grid().dp(3), Grid().dp(1)};
  task.prepare = [yours](Rank& rank) -> Answer {
    const Layout layout = layout_without_tp(rank);
    std::vector<Flat> mine;
    std::vector<Index> sizes;
    for (const DistMeta& meta : layout.buffers[0].parameters) {
      mine.push_back(part_of(layout, meta, rank.place.dp));
      sizes.push_back(meta.shape.size());
    }
    return [=, &rank] {
      Flat rms = yours(mine, sizes, rank.dp());
      // Near enough counts as equal; what that needs is not the reader's.
      MemoryMeter uncounted;
      const MeterScope scope(uncounted);
      const Index count = static_cast<Index>(rms.size());
      return named(lesson_12::near_as_equal({Matrix(1, count, rms)}, {wanted_of(rank)}, 1e-5)[0], "rms");
    };
  };
  task.reference = [](const RankInfo& info) { return named(wanted_of(info), "rms"); };
  task.plan = [](const RankInfo& info) {
    Plan plan{info.grid, info.place, {}};
    const Index count = static_cast<Index>(lesson_12::kMatrices.size());
    plan.take(count, "sums of squares");
    plan.call("dp", CollectiveKind::all_reduce, ElementType::float32, count, count);
    return plan;
  };
  task.looks = [](const RankInfo& info) {
    const Layout layout = layout_without_tp(info);
    Flat zeros, own, mean;
    for (const DistMeta& meta : layout.buffers[0].parameters) {
      double sum = 0;
      for (int rank = 0; rank < info.grid.dp(); ++rank) sum += own_rms(part_of(layout, meta, rank));
      zeros.push_back(0);
      own.push_back(static_cast<float>(own_rms(part_of(layout, meta, info.place.dp))));
      mean.push_back(static_cast<float>(sum / info.grid.dp()));
    }
    const Index count = static_cast<Index>(zeros.size());
    return std::vector<Look>{{"zeros", Matrix(1, count, zeros)},
                             {"the RMS of what you own alone", Matrix(1, count, own)},
                             {"the mean of the ranks' own RMS", Matrix(1, count, mean)}};
  };
  return task;
}

const bool monitor_rms_added = add_exercise("lesson_12_matched_rms", "monitor_rms", monitor_rms);

}  // namespace
}  // namespace muonwalk::sim
