#include <cmath>

#include "lesson_02_collectives.hpp"
#include "lessons/lesson_02_collectives/try_sum_pieces/contract.hpp"
#include "sim/classroom/exercise.hpp"

namespace muonwalk::sim {
namespace {

// Rank r's piece: numbers of about one size, so that whatever is forgotten shows; and so many that every order does.
Flat piece_of(const RankInfo&, int r) {
  Flat piece;
  for (int i = 0; i < 8; ++i) piece.push_back(std::sqrt(static_cast<float>(8 * r + i + 2)));
  return piece;
}

Matrix as_row(const Flat& run) { return Matrix(1, static_cast<Index>(run.size()), run); }

Task sum_pieces(SumPieces* yours) {
  Task task;
  task.grids = {Grid().dp(4), Grid().dp(5), Grid().dp(1)};
  task.prepare = [yours](Rank& rank) -> Answer {
    std::vector<Flat> pieces;
    for (int r = 0; r < rank.grid.dp(); ++r) pieces.push_back(piece_of(rank, r));
    return [=] { return named(yours(pieces), "sum"); };
  };
  task.reference = [](const RankInfo& info) {
    Flat sum;
    for (std::size_t i = 0; i < piece_of(info, 0).size(); ++i) {
      Flat leaves;
      for (int r = 0; r < info.grid.dp(); ++r) leaves.push_back(piece_of(info, r)[i]);
      sum.push_back(lesson_02::plain_tree(leaves));
    }
    return named(sum, "sum");
  };
  task.plan = [](const RankInfo& info) {
    Plan plan{info.grid, info.place, {}};
    plan.take((info.grid.dp() + 1) * static_cast<Index>(piece_of(info, 0).size()), "the pieces");
    return plan;
  };
  task.looks = [](const RankInfo& info) {
    std::vector<Look> looks;
    for (int r = 0; r < info.grid.dp(); ++r)
      looks.push_back({"the piece of rank " + std::to_string(r) + " alone", as_row(piece_of(info, r))});
    return looks;
  };
  return task;
}

const bool sum_pieces_added = add_exercise("lesson_02_collectives", "sum_pieces", sum_pieces);

}  // namespace
}  // namespace muonwalk::sim
