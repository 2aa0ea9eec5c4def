#include "sim/lesson_18/published_claims.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <filesystem>
#include <stdexcept>

#include "sim/analyser/reader.hpp"
#include "src/errors.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"

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

std::vector<Row> rows_of_claims() {
  const auto claim = [](const char* words, const char* published, const char* title, std::vector<const char*> figures,
                        double asserted, double nearness, const char* of_what) {
    return Row{words, published, title, std::move(figures), asserted, nearness, of_what};
  };
  return {
      claim("communication time, Muon / AdamW", "0.57", "Communication: Muon's against AdamW's", {"Muon / AdamW"}, 0.57,
            0.005, ", kernels of rank 0"),
      claim("calls of collectives, Muon and AdamW", "40 and 110", "Communication: Muon's against AdamW's",
            {"Muon, calls", "AdamW, calls"}, 40, 0.5, ""),
      claim("communication a step, of both", "139.5 and 245.8 ms", "The same, \"per step\"",
            {"Muon, a step", "AdamW, a step"}, 139.53, 0.005, ""),
      claim("the optimizer's share of a step, Muon", "1.1 %", "The optimizer's overhead", {"Muon, share"}, 1.1, 0.05,
            ", on the device"),
      claim("forward and backward, of both", "271 and 281 ms", "Forward and backward", {"Muon", "AdamW"}, 271, 0.5, ""),
      claim("async against sync, slower", "2.1 and 1.5", "With async_op=True",
            {"Muon, span, async / sync", "AdamW, span, async / sync"}, 2.1, 0.05, ", of the span")};
}

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

const std::vector<std::string> kPublishedFiles = {
    "trace_muon_FULLSTEP_dp2_tp2_rank0.json", "trace_adamw_FULLSTEP_rank0.json",
    "trace_muon_FULLSTEP_dp2_tp2_async_rank0.json", "trace_adamw_FULLSTEP_async_rank0.json"};

std::vector<TraceFile> read_published_folder(const std::string& folder) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error))
    throw UsageError(fmt::format("--published {} names no folder; give the one that holds {}", as_typed(folder),
                                 kPublishedFiles.front()));
  std::vector<TraceFile> files;
  for (const std::string& name : kPublishedFiles) {
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    if (!std::filesystem::exists(path, error))
      throw UsageError(fmt::format("--published {} has no file {}; all four published traces have to be there: {}",
                                   as_typed(folder), name, fmt::join(kPublishedFiles, ", ")));
    files.push_back(read_trace(path.string()));
  }
  return files;
}

std::vector<std::string> published_claims_table(const std::vector<PublishedClaim>& claims, const OwnRuns& own) {
  std::vector<std::vector<std::string>> rows = {
      {"claims (Field Notes, Jen Wei, 2025)", "published", "measured", "verdict"}};
  for (const Row& row : rows_of_claims()) rows.push_back(cells_of(row, claims));
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
  return table_lines(rows, 4);
}

}  // namespace muonwalk::sim
