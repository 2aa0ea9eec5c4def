#include "src/text/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "src/text/text.hpp"

namespace muonwalk {

Column::Column(std::string heading, Side side) : heading_(std::move(heading)), side_(side) {}
Column::Column(std::string heading, std::string (*write)(std::int64_t)) : heading_(std::move(heading)), write_(write) {}
Column::Column(std::string heading, std::string (*write)(double)) : heading_(std::move(heading)), write_(write) {}
Column::Column(std::string heading, Digits digits) : heading_(std::move(heading)), write_(std::move(digits)) {}

Table::Table(std::vector<Column> columns, int indent) : columns_(std::move(columns)), indent_(indent) {}

void Table::column(Column column) { columns_.push_back(std::move(column)); }

void Table::row(const std::vector<Cell>& cells) {
  if (cells.size() > columns_.size())
    throw std::invalid_argument(fmt::format("a row of {} cells in a table of {}", cells.size(), columns_.size()));
  std::vector<std::string> row;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto number = [&](auto value) {
      return std::visit(
          [&](const auto& write) -> std::string {
            if constexpr (std::is_same_v<std::decay_t<decltype(write)>, Digits>)
              return fixed_text(static_cast<double>(value), write.after_point, write.unit);
            else if constexpr (std::is_same_v<std::decay_t<decltype(write)>, std::string (*)(double)>)
              return write(static_cast<double>(value));
            else
              return write(static_cast<std::int64_t>(value));
          },
          columns_[i].write_);
    };
    const auto& value = cells[i].value_;
    if (const std::string* text = std::get_if<std::string>(&value))
      row.push_back(*text);
    else if (const std::int64_t* whole = std::get_if<std::int64_t>(&value))
      row.push_back(number(*whole));
    else
      row.push_back(number(std::get<double>(value)));
  }
  if (!row.empty()) row[0].insert(0, static_cast<std::size_t>(indent_), ' ');
  rows_.push_back(std::move(row));
}

std::vector<std::string> Table::lines() const {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> headings;
  for (const Column& column : columns_) headings.push_back(column.heading_);
  if (std::any_of(headings.begin(), headings.end(), [](const std::string& each) { return !each.empty(); }))
    rows.push_back(headings);
  rows.insert(rows.end(), rows_.begin(), rows_.end());
  std::vector<int> widths(columns_.size(), 0);
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], text_width(row[i]));
  std::vector<std::string> lines;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += (i == 0 ? "" : "  ") +
              (columns_[i].side_ == Side::left ? pad_right(row[i], widths[i]) : pad_left(row[i], widths[i]));
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string Table::text() const { return lines_text(lines()); }

}  // namespace muonwalk
