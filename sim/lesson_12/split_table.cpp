#include "sim/lesson_12/split_table.hpp"

#include <fmt/format.h>

#include "sim/lesson_12/distances.hpp"
#include "src/numerics/tree_sum.hpp"
#include "src/optim/steps.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

std::vector<muonwalk::Piece> pieces_of(const AttentionRows& attention, QkvSplit split) {
  if (split == QkvSplit::none) return {{"q, k and v", {{0, attention.rows()}}}};
  return qkv_pieces(attention, split);
}

double relative_on(const Matrix& wrong, const Matrix& right, const muonwalk::Piece& piece) {
  const Matrix meant = take_rows(right, piece);
  return distance(take_rows(wrong, piece), meant) / frobenius_norm(meant);
}

}  // namespace

Matrix split_update(const Matrix& u, const AttentionRows& attention, QkvSplit split) {
  MuonSettings settings = for_tables({});
  settings.lr = 1;
  Matrix update = u;
  for (const muonwalk::Piece& piece : pieces_of(attention, split)) {
    Matrix rows = orthogonalize(take_rows(u, piece), settings, "qkv");
    const float scale = update_scale({rows.rows(), rows.cols()}, settings);
    for (float& value : rows.flat()) value *= scale;
    put_rows(rows, piece, update);
  }
  return update;
}

SplitError split_error(const AttentionRows& attention, Index cols, QkvSplit split, float size_of_kv,
                       std::uint64_t seed) {
  Matrix u = noise({attention.rows(), cols}, seed, 0);
  const std::vector<muonwalk::Piece> three = qkv_pieces(attention, QkvSplit::three);
  for (const std::size_t kv : {1, 2}) {
    Matrix rows = take_rows(u, three[kv]);
    for (float& value : rows.flat()) value *= size_of_kv;
    put_rows(rows, three[kv], u);
  }
  const Matrix right = split_update(u, attention, QkvSplit::three), other = split_update(u, attention, split);
  SplitError error;
  error.calls = static_cast<int>(pieces_of(attention, split).size());
  error.all = distance(other, right) / frobenius_norm(right);
  error.q = relative_on(other, right, three[0]);
  error.k = relative_on(other, right, three[1]);
  error.v = relative_on(other, right, three[2]);
  return error;
}

std::string split_table(const AttentionRows& attention, Index cols, std::uint64_t seed) {
  std::vector<SplitError> errors;
  const auto add = [&](const std::string& what, QkvSplit split, float size_of_kv) {
    errors.push_back(split_error(attention, cols, split, size_of_kv, seed));
    errors.back().what = what;
  };
  add("in one call; random gradients, all of one size", QkvSplit::none, 1);
  add("those of k and v a tenth of that", QkvSplit::none, 0.1f);
  add("those of k and v ten times that", QkvSplit::none, 10);
  add("a call for each head; all of one size", QkvSplit::heads, 1);

  std::vector<std::vector<std::string>> rows = {
      {fmt::format("qkv {}, {} : {} heads", shape_text(attention.rows(), cols), attention.heads, attention.kv_heads),
       "calls", "update off by", "q", "k", "v"}};
  for (const SplitError& each : errors)
    rows.push_back({each.what, std::to_string(each.calls), relative_text(each.all), relative_text(each.q),
                    relative_text(each.k), relative_text(each.v)});
  rows.push_back({"published, one call: Megatron-LM #7117", "1", "26 %", "", "95 %", "95 %"});
  return labelled("split", table_lines(rows, 1));
}

std::string heads_text(const AttentionRows& attention, Range rows) {
  std::vector<std::string> heads;
  for (const muonwalk::Piece& head : qkv_pieces(attention, QkvSplit::heads)) {
    const Index shared = intersection(head.rows[0], rows).size();
    if (shared <= 0) continue;
    if (shared == attention.head_rows)
      heads.push_back(head.name);
    else if (2 * shared == attention.head_rows)
      heads.push_back("half of " + head.name);
    else
      heads.push_back(fmt::format("{} of {} rows of {}", shared, attention.head_rows, head.name));
  }
  return fmt::format("{}", fmt::join(heads, ", "));
}

}  // namespace muonwalk::sim
