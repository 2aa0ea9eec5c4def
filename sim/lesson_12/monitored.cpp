#include "sim/lesson_12/monitored.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "sim/lesson_12/distances.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {

Matrix row_of(const std::vector<ParameterRms>& all) {
  Matrix row(1, 2 * static_cast<Index>(all.size()));
  for (std::size_t p = 0; p < all.size(); ++p) {
    row.flat()[2 * p] = static_cast<float>(all[p].weights);
    row.flat()[2 * p + 1] = static_cast<float>(all[p].update);
  }
  return row;
}

Matrix expected_row(const std::vector<Parameter>& matrices, const std::vector<NamedMatrix>& before,
                    const std::vector<NamedMatrix>& after, double keep) {
  std::vector<ParameterRms> all;
  for (std::size_t p = 0; p < matrices.size(); ++p) {
    const Matrix &old = before[p].matrix, &now = after[p].matrix;
    double squares = 0;
    for (Index i = 0; i < now.size(); ++i) {
      const double update = keep * static_cast<double>(old.data()[i]) - static_cast<double>(now.data()[i]);
      squares += update * update;
    }
    all.push_back({rms_of(now), std::sqrt(squares / static_cast<double>(now.size()))});
  }
  return row_of(all);
}

std::vector<Matrix> near_as_equal(const std::vector<Matrix>& held, const std::vector<Matrix>& wanted,
                                  double tolerance) {
  std::vector<Matrix> compared = held;
  for (std::size_t row = 0; row < std::min(held.size(), wanted.size()); ++row) {
    if (held[row].rows() != wanted[row].rows() || held[row].cols() != wanted[row].cols()) continue;
    for (Index i = 0; i < held[row].size(); ++i) {
      const double is = static_cast<double>(held[row].data()[i]), want = static_cast<double>(wanted[row].data()[i]);
      if (std::fabs(is - want) <= tolerance * std::fabs(want)) compared[row].data()[i] = wanted[row].data()[i];
    }
  }
  return compared;
}

std::vector<NamedMatrix> named_rows(const std::vector<std::string>& names, const std::vector<Matrix>& rows) {
  if (names.size() != rows.size())
    throw std::invalid_argument(fmt::format("{} rows can't have {} names", rows.size(), names.size()));
  std::vector<NamedMatrix> named;
  for (std::size_t r = 0; r < rows.size(); ++r) named.push_back({names[r], rows[r]});
  return named;
}

std::string monitor_table(const std::vector<std::vector<NamedMatrix>>& rows_of_ranks,
                          const std::vector<Parameter>& matrices) {
  if (rows_of_ranks.empty()) return "";
  std::vector<std::vector<std::string>> table = {{"rms of last update / weights"}};
  for (const Parameter& matrix : matrices) table[0].push_back(matrix.name);
  for (const NamedMatrix& row : rows_of_ranks.front()) {
    table.push_back({row.name});
    for (std::size_t p = 0; p < matrices.size(); ++p)
      table.back().push_back(fmt::format("{:.4f} / {:.2f}", row.matrix.flat()[2 * p + 1], row.matrix.flat()[2 * p]));
  }
  return labelled("monitor", table_lines(table, 1));
}

}  // namespace muonwalk::sim
