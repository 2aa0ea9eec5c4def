#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "src/text/units.hpp"

namespace muonwalk {

enum class Side { left, right };

/// One column of a table: its heading, and how its numbers are written. Text stays as it is, whatever the column.
///
///   {"matrix"}                         text, at the left
///   {"cut", Side::right}               text, at the right
///   {"bucket", number_text}            any function of units.hpp that takes one number, or a lambda
///   {"× the work", Digits{2}}          so many digits after the point
///   {"Newton–Schulz", Digits{1, "s"}}  and a unit
struct Digits {
  int after_point = 0;
  std::string unit = {};
};

class Column {
 public:
  Column(std::string heading, Side side = Side::left);
  Column(std::string heading, std::string (*write)(std::int64_t));
  Column(std::string heading, std::string (*write)(double));
  Column(std::string heading, Digits digits);

 private:
  friend class Table;
  std::string heading_;
  Side side_ = Side::right;
  std::variant<Digits, std::string (*)(std::int64_t), std::string (*)(double)> write_ = number_text;
};

/// What stands in a row and a column: text, a number that the column writes, or nothing ("–").
class Cell {
 public:
  Cell(std::string text) : value_(std::move(text)) {}
  Cell(const char* text) : value_(std::string(text)) {}
  Cell(std::nullopt_t) : value_(std::string("–")) {}
  template <class Number, std::enable_if_t<std::is_arithmetic_v<Number> && sizeof(Number) >= 4, int> = 0>
  Cell(Number number) {
    if constexpr (std::is_integral_v<Number>)
      value_ = static_cast<std::int64_t>(number);
    else
      value_ = static_cast<double>(number);
  }
  template <class Value>
  Cell(const std::optional<Value>& value) : Cell(value ? Cell(*value) : Cell(std::nullopt)) {}

 private:
  friend class Table;
  std::variant<std::string, std::int64_t, double> value_;
};

/// Rows of cells that stand under each other: every column is as wide as its widest cell, with two spaces between
/// columns and none at the end of a line.
///
///   Table table({{"way"}, {"messages", number_text}, {"hidden", percent_text}});
///   for (const Way& way : ways) table.row({way.name, way.messages, way.hidden});
///   return table.text();
class Table {
 public:
  /// Without a heading line where all headings are empty. Rows begin with `indent` spaces, the heading line does not.
  explicit Table(std::vector<Column> columns, int indent = 0);

  void column(Column column);

  /// A row may have fewer cells than there are columns, not more (std::invalid_argument).
  void row(const std::vector<Cell>& cells);

  std::vector<std::string> lines() const;

  /// The lines as one text, without a line end behind the last.
  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
  int indent_ = 0;
};

}  // namespace muonwalk
