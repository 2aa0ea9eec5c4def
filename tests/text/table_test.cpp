// Tables: random ones against a plain count of columns; units: one sample of each size.
#include "src/text/table.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <stdexcept>

#include "src/text/text.hpp"

using namespace muonwalk;

TEST_CASE("Table: columns are as wide as their widest cell, two spaces apart, each aligned at its side") {
  std::mt19937 random(1);
  const auto draw = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
  const auto word = [&](int width) {
    std::string text;
    while (width-- > 0) text += draw(0, 1) == 0 ? "a" : "×";
    return text;
  };
  for (int trial = 0; trial < 200; ++trial) {
    CAPTURE(trial);
    const int columns = draw(1, 5), indent = draw(0, 3);
    std::vector<Side> sides;
    std::vector<std::vector<std::string>> rows(1);
    Table table({}, indent);
    for (int c = 0; c < columns; ++c) {
      sides.push_back(draw(0, 1) == 0 ? Side::left : Side::right);
      rows[0].push_back(word(draw(1, 8)));
      table.column({rows[0].back(), sides.back()});
    }
    for (int r = draw(0, 5); r > 0; --r) {
      rows.emplace_back();
      std::vector<Cell> cells;
      for (int c = draw(1, columns); c > 0; --c) {
        const std::string cell = word(draw(1, 8));
        cells.emplace_back(cell);
        rows.back().push_back(cells.size() == 1 ? std::string(static_cast<std::size_t>(indent), ' ') + cell : cell);
      }
      table.row(cells);
    }
    std::vector<int> widths(static_cast<std::size_t>(columns), 0);
    for (const auto& row : rows)
      for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], text_width(row[c]));
    std::string whole;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      std::string line;
      for (std::size_t c = 0; c < rows[r].size(); ++c) {
        const std::string gap(static_cast<std::size_t>(widths[c] - text_width(rows[r][c])), ' ');
        line += (c > 0 ? "  " : "") + (sides[c] == Side::left ? rows[r][c] + gap : gap + rows[r][c]);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      REQUIRE(r < table.lines().size());
      CHECK(table.lines()[r] == line);
      whole += (r > 0 ? "\n" : "") + line;
    }
    CHECK(table.lines().size() == rows.size());
    CHECK(table.text() == whole);
  }
}

TEST_CASE("Table: a column writes its numbers, text stays as it is, nothing is a dash") {
  Table table({{"way"},
               {"buckets", number_text},
               {"hidden", percent_text},
               {"ratio", Digits{2}},
               {"time", Digits{1, "s"}},
               {"step", seconds_text},
               {"twice", [](double number) { return std::to_string(static_cast<int>(2 * number)); }}});
  table.row({"mine", 12345, 0.25, 2, 3.25f, 1e-3, 4});
  table.row({std::string("all"), 7.0, std::nullopt, std::optional<double>(1.5), std::optional<double>()});
  CHECK(table.text() ==
        "way   buckets  hidden  ratio   time  step  twice\n"
        "mine   12,345  25.0 %   2.00  3.2 s  1 ms      8\n"
        "all         7       –   1.50      –");
  CHECK_THROWS_AS(table.row({1, 2, 3, 4, 5, 6, 7, 8}), std::invalid_argument);

  Table without_heading({{""}, {"", number_text}}, 2);
  without_heading.row({"w", 1000});
  CHECK(without_heading.text() == "  w  1,000");
  CHECK(Table({{""}}).text().empty());
}

TEST_CASE("units: one sample of each size, and what is rounded up to the next") {
  CHECK(count_text(1, "bucket") == "1 bucket");
  CHECK(count_text(3, "bucket") == "3 buckets");
  CHECK(fixed_text(2.5, 2) == "2.50");
  CHECK(fixed_text(-1.25, 1, "GiB") == "-1.2 GiB");
  CHECK(prefixed_text(12, "") == "12");
  CHECK(prefixed_text(999.4, "B") == "999 B");
  CHECK(prefixed_text(999.6, "B") == "1 kB");
  CHECK(prefixed_text(999.6, "B", 4) == "999.6 B");
  CHECK(prefixed_text(1.43e6, "B") == "1.43 MB");
  CHECK(prefixed_text(-6.15e11, "FLOP") == "-615 GFLOP");
  CHECK(prefixed_text(2e21, "") == "2e+06 P");
  CHECK(bytes_text(1430560) == "1,430,560 B");
  CHECK(gibibytes_text(3 * 1073741824.0) == "3.0 GiB");
  CHECK(seconds_text(1.234e-6) == "1.23 µs");
  CHECK(seconds_text(0.0456) == "45.6 ms");
  CHECK(seconds_text(7.891) == "7.89 s");
  CHECK(seconds_text(999.6) == "1,000 s");
  CHECK(seconds_text(1449.6) == "1,450 s");
  CHECK(seconds_text(1449.6, 4) == "1,450 s");
  CHECK(seconds_text(12345678, 4) == "12,350,000 s");
  CHECK(ms_text(248450000) == "248.45");
  CHECK(ms_text(100000) == "0.10");
  CHECK(ms_text(-99900) == "-0.0999");
  CHECK(ms_text(0) == "0.00");
  CHECK(percent_text(0.6104) == "61.0 %");
  CHECK(ratio_text(3, 2) == "1.50");
  CHECK(ratio_text(1234, 10) == "123");
  CHECK(ratio_text(3, 0) == "–");
  CHECK(flops_text(0).empty());
  CHECK(flops_text(1234) == "1,234 FLOP");
  CHECK(flops_text(1.434e6) == "1.43 MFLOP");
  CHECK(flops_text(25e9) == "25.00 GFLOP");
}
