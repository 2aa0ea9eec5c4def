#include "sim/lesson_18/published_claims_table.hpp"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

#include "sim/analyser/figure_table.hpp"

namespace muonwalk::sim {
namespace {

constexpr const char* kCantTell = "can't tell";

// A row is made of figures of a claim; the verdict is on the first of them.
struct Row {
  const char* words;
  const char* published;             // as it was published
  const char* claim;                 // the title of the PublishedClaim
  std::vector<const char*> figures;  // what its figures are called
  double asserted;                   // what the published figure says of the first of these
  double nearness;                   // and to how many of its units it says so
  const char* of_what;               // what is measured
};

const std::vector<Row> kRows = {
    {"communication time, Muon / AdamW",
     "0.57",
     "Communication: Muon's against AdamW's",
     {"Muon / AdamW"},
     0.57,
     0.005,
     ", kernels of rank 0"},
    {"calls of collectives, Muon and AdamW",
     "40 and 110",
     "Communication: Muon's against AdamW's",
     {"Muon, calls", "AdamW, calls"},
     40,
     0.5,
     ""},
    {"communication a step, of both",
     "139.5 and 245.8 ms",
     "The same, \"per step\"",
     {"Muon, a step", "AdamW, a step"},
     139.53,
     0.005,
     ""},
    {"the optimizer's share of a step, Muon",
     "1.1 %",
     "The optimizer's overhead",
     {"Muon, share"},
     1.1,
     0.05,
     ", on the device"},
    {"forward and backward, of both", "271 and 281 ms", "Forward and backward", {"Muon", "AdamW"}, 271, 0.5, ""},
    {"async against sync, slower",
     "2.1 and 1.5",
     "With async_op=True",
     {"Muon, span, async / sync", "AdamW, span, async / sync"},
     2.1,
     0.05,
     ", of the span"}};

const PublishedFigure& figure_of(const std::vector<PublishedClaim>& claims, const std::string& title,
                                 const std::string& what) {
  for (const PublishedClaim& claim : claims)
    for (const PublishedFigure& figure : claim.figures)
      if (claim.title == title && figure.what == what) return figure;
  throw std::logic_error(fmt::format("no published figure is called \"{}\" under \"{}\"", what, title));
}

std::vector<std::string> cells_of(const Row& row, const std::vector<PublishedClaim>& claims) {
  const std::string words = std::string("  ") + row.words;
  if (claims.empty()) return {words, row.published, "give --published", kCantTell};
  std::string measured;
  for (const char* what : row.figures) {
    const PublishedFigure& figure = figure_of(claims, row.claim, what);
    const bool last = what == row.figures.back();
    measured += fmt::format("{}{:.{}f}{}", measured.empty() ? "" : " and ", figure.corrected, figure.corrected_decimals,
                            last && !figure.unit.empty() ? " " + figure.unit : "");
  }
  const double first = figure_of(claims, row.claim, row.figures.front()).corrected;
  const bool holds = std::abs(first - row.asserted) <= row.nearness;
  return {words, row.published, measured + row.of_what, holds ? "holds" : "doesn't hold"};
}

}  // namespace

std::vector<std::string> published_claims_table(const std::vector<PublishedClaim>& claims, const OwnRuns& own) {
  std::vector<std::vector<std::string>> rows = {
      {"claims (Field Notes, Jen Wei, 2025)", "published", "measured", "verdict"}};
  for (const Row& row : kRows) rows.push_back(cells_of(row, claims));
  rows.insert(rows.begin() + 2,
              {"  the same in bytes, our own runs", "",
               own.bytes_ratio ? fmt::format("{:.3f}, here", *own.bytes_ratio) : "run all layouts", ""});
  const bool half = own.state_ratio && std::abs(100 * *own.state_ratio - 50) <= 0.5;
  rows.push_back({"  state a weight, Muon / AdamW", "50 %",
                  own.state_ratio ? fmt::format("{:.0f} %, here", 100 * *own.state_ratio) : "run all layouts",
                  !own.state_ratio ? kCantTell
                  : half           ? "holds"
                                   : "doesn't hold"});
  rows.push_back({"  the sweet spot is dp 2 × tp 2", "best of 3", "of 3 traces, 1 is public", kCantTell});
  return figure_table(rows, 4);
}

}  // namespace muonwalk::sim
