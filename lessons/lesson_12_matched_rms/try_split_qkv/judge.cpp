#include "lesson_12_matched_rms.hpp"
#include "lessons/lesson_12_matched_rms/try_split_qkv/contract.hpp"
#include "sim/classroom/exercise.hpp"
#include "src/numerics/philox.hpp"

namespace muonwalk::sim {
namespace {

// The lesson's attention, and one in which k and v have as many heads as q.
const std::vector<AttentionRows>& attentions() {
  static const std::vector<AttentionRows> all = {lesson_12::kAttention, {2, 2, 2}};
  return all;
}

Matrix whole_of(std::size_t number) {
  return random_matrix({1, number}, attentions()[number].rows(), lesson_12::kLayer[0].shape.cols);
}

std::string name_of(std::size_t number) {
  return fmt::format("qkv with {} heads of q and {} of k", attentions()[number].heads, attentions()[number].kv_heads);
}

// The rows of a rank of TP, of the matrix in which each of these pieces is orthogonalized by itself.
Matrix rows_of(const RankInfo& rank, std::size_t number, const std::vector<muonwalk::Piece>& pieces) {
  Matrix whole = whole_of(number);
  for (const muonwalk::Piece& piece : pieces) put_rows(newton_schulz(take_rows(whole, piece)), piece, whole);
  return tp_shard(whole, SplitDim::rows, rank.grid.tp(), rank.place.tp);
}

Task split_qkv(SplitQkv* yours) {
  Task task;
  task.grids = {Grid().tp(2), Grid().tp(4), Grid().tp(1)};
  task.own_design = true;
  task.prepare = [yours](Rank& rank) -> Answer {
    std::vector<Matrix> slices;
    for (std::size_t number = 0; number < attentions().size(); ++number)
      slices.push_back(tp_shard(whole_of(number), SplitDim::rows, rank.grid.tp(), rank.place.tp));
    return [=, &rank] {
      std::vector<NamedMatrix> all;
      for (std::size_t number = 0; number < slices.size(); ++number)
        all.push_back({name_of(number), yours(slices[number], attentions()[number], rank.tp())});
      return all;
    };
  };
  task.reference = [](const RankInfo& info) {
    std::vector<NamedMatrix> all;
    for (std::size_t number = 0; number < attentions().size(); ++number)
      all.push_back({name_of(number), rows_of(info, number, qkv_pieces(attentions()[number], QkvSplit::three))});
    return all;
  };
  // Of memory there is enough for three wholes beside what Newton–Schulz needs.
  task.plan = [](const RankInfo& info) {
    Plan plan{info.grid, info.place, {}};
    for (std::size_t number = 0; number < attentions().size(); ++number) {
      const Matrix whole = whole_of(number);
      const Index slice = whole.size() / info.grid.tp(), shorter = std::min(whole.rows(), whole.cols());
      const Index working = 5 * whole.size() + 2 * shorter * shorter;
      plan.call("tp", CollectiveKind::all_gather, ElementType::float32, slice, whole.size());
      plan.take(working, "the whole, its pieces, and what Newton–Schulz holds");
      plan.give_back(working, "the whole, its pieces, and what Newton–Schulz holds");
      plan.take(slice, "the result");
    }
    return plan;
  };
  task.looks = [](const RankInfo& info) {
    std::vector<Look> looks;
    for (std::size_t number = 0; number < attentions().size(); ++number) {
      const Index rows = attentions()[number].rows();
      std::vector<muonwalk::Piece> thirds;
      for (Index third = 0; third < 3; ++third) thirds.push_back({"", {{third * rows / 3, (third + 1) * rows / 3}}});
      looks.push_back({"what you were given", rows_of(info, number, {})});
      looks.push_back({"orthogonalized in one call, q, k and v together", rows_of(info, number, {{"", {{0, rows}}}})});
      looks.push_back({"orthogonalized in three equal parts, but q has more heads", rows_of(info, number, thirds)});
    }
    return looks;
  };
  return task;
}

const bool split_qkv_added = add_exercise("lesson_12_matched_rms", "split_qkv", split_qkv);

}  // namespace
}  // namespace muonwalk::sim
