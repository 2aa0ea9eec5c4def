#include "lessons/lesson_18_read_a_trace/published_claims.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "src/errors.hpp"
#include "src/text/names.hpp"
#include "src/text/table.hpp"
#include "src/text/text.hpp"
#include "tools/trace/reader.hpp"

namespace muonwalk::sim {
namespace {

constexpr const char* kCantTell = "can't tell";

using Id = FigureId;

// A row is made of figures of the claims; the verdict is on the first of them.
struct ClaimRow {
  const char* words;
  const char* published;  // as it was published
  Id first, second;       // as they were read again; perhaps there is only the first
  double asserted;        // what the published figure says of the first of these
  double nearness;        // and to how many of its units it says so
  const char* rule;       // by which it was read again
  bool of_bytes = false;  // our own runs say the same of bytes
};

const std::vector<ClaimRow>& rows_of_claims() {
  static const std::vector<ClaimRow> rows = {
      {"communication time, Muon / AdamW", "0.57", Id::communication_ratio, Id::unnamed, 0.57, 0.005,
       "kernels of rank 0, each once", true},
      {"calls of collectives, Muon and AdamW", "40 and 110", Id::muon_calls, Id::adamw_calls, 40, 0.5,
       "a call is one kernel; its operator and its ranges, which bear its name, are not further calls"},
      {"communication per step, of both", "139.5 and 245.8 ms", Id::muon_communication_per_step,
       Id::adamw_communication_per_step, 139.53, 0.005, "kernels, each once, divided by the steps in the file"},
      {"the optimizer's share of a step, Muon", "1.1 %", Id::muon_optimizer_share, Id::unnamed, 1.1, 0.05,
       "its time on the device, in that of the device; published: on the host, which only starts it"},
      {"forward and backward, of both", "271 and 281 ms", Id::muon_forward_backward, Id::adamw_forward_backward, 271,
       0.5, "kernels that compute, united; published: half of the ranges of host and device together"},
      {"async against sync, times slower", "2.1 and 1.5", Id::muon_async_span_ratio, Id::adamw_async_span_ratio, 2.1,
       0.05, "how long the device took in all; a call beside computation takes longer, and yet saves time"}};
  return rows;
}

const PublishedFigure& figure_of(const std::vector<PublishedClaim>& claims, Id id) {
  for (const PublishedClaim& claim : claims)
    for (const PublishedFigure& figure : claim.figures)
      if (figure.id == id) return figure;
  throw std::logic_error("a figure that the table of claims needs is in no claim");
}

std::vector<Cell> cells_of(const ClaimRow& row, const std::vector<PublishedClaim>& claims) {
  std::string again;
  for (const Id id : {row.first, row.second}) {
    if (id == Id::unnamed) continue;
    const PublishedFigure& figure = figure_of(claims, id);
    const bool last = id == row.second || row.second == Id::unnamed;
    again += fmt::format("{}{:.{}f}{}", again.empty() ? "" : " and ", figure.corrected, figure.corrected_decimals,
                         last && !figure.unit.empty() ? " " + figure.unit : "");
  }
  const double first = figure_of(claims, row.first).corrected;
  const bool holds = std::abs(first - row.asserted) <= row.nearness;
  return {row.words, row.published, again, holds ? "holds" : "doesn't hold"};
}

// Where the figures come from. The link is a line of its own, so that it can be followed.
std::vector<std::string> source_of(const ReadAgain& read) {
  const std::string who =
      read.folder.empty()
          ? fmt::format("as we read its four traces (XXH3 {}); --published DIR reads them here", read.digest)
          : fmt::format("as read now in {}, {}", visible_name(read.folder),
                        read.digest == read_by_us().digest
                            ? "the same four traces that we have read (XXH3 " + read.digest + ")"
                            : "which are other traces than those that we have read");
  std::vector<std::string> lines =
      wrap_text("source  Jen Wei, \"Distributed Muon: Field Notes & Reproducibility Artifacts\", 2025, " + who, 8);
  lines.push_back("        https://huggingface.co/datasets/bird-of-paradise/muon-distributed-reproducibility");
  return lines;
}

// In the order in which published_claims takes them.
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

std::string digest_of_published(const std::string& folder) {
  std::string bytes;
  for (const std::string& name : kPublishedFiles) {
    std::ifstream file(std::filesystem::path(folder) / name, std::ios::binary);
    bytes.append(std::istreambuf_iterator<char>(file), {});
    if (!file) throw UsageError(fmt::format("--published {}: {} can't be read", as_typed(folder), name));
  }
  return fmt::format("{:016x}", XXH3_64bits(bytes.data(), bytes.size()));
}

}  // namespace

const std::vector<std::string> kPublishedFiles = {
    "trace_muon_FULLSTEP_dp2_tp2_rank0.json", "trace_adamw_FULLSTEP_rank0.json",
    "trace_muon_FULLSTEP_dp2_tp2_async_rank0.json", "trace_adamw_FULLSTEP_async_rank0.json"};

ReadAgain read_in(const std::string& folder) {
  return {published_claims(read_published_folder(folder)), digest_of_published(folder), folder};
}

ReadAgain read_by_us() {
  PublishedClaim read;
  const auto add = [&read](Id id, double corrected, int decimals, const char* unit) {
    PublishedFigure figure;
    figure.id = id;
    figure.unit = unit;
    figure.corrected = corrected;
    figure.corrected_decimals = decimals;
    read.figures.push_back(figure);
  };
  add(Id::muon_calls, 10, 0, "");
  add(Id::adamw_calls, 25, 0, "");
  add(Id::communication_ratio, 0.594, 3, "");
  add(Id::muon_communication_per_step, 13.75, 2, "ms");
  add(Id::adamw_communication_per_step, 23.16, 2, "ms");
  add(Id::muon_optimizer_share, 61.0, 1, "%");
  add(Id::muon_forward_backward, 157.85, 2, "ms");
  add(Id::adamw_forward_backward, 149.40, 2, "ms");
  add(Id::muon_async_span_ratio, 0.90, 2, "");
  add(Id::adamw_async_span_ratio, 0.99, 2, "");
  return {{read}, "4db06b8bd1f5925a", ""};
}

std::vector<std::string> published_claims_table(const ReadAgain& read, const OwnRuns& own) {
  Table table({{"claims"}, {"published"}, {"read again"}, {"verdict"}}, 2);
  std::vector<std::string> rules = {""};
  const auto add = [&](const std::vector<Cell>& cells, const std::string& rule) {
    table.row(cells);
    rules.push_back("    " + rule);
  };
  for (const ClaimRow& row : rows_of_claims()) {
    std::string rule = row.rule;
    if (row.of_bytes && own.bytes_ratio && own.equal_grid_ratio)
      rule += fmt::format("; in bytes, our own runs: {:.3f} × on these grids, {:.3f} × on dp 4", *own.bytes_ratio,
                          *own.equal_grid_ratio);
    add(cells_of(row, read.claims), rule);
  }
  const bool half = own.state_ratio && std::abs(100 * *own.state_ratio - 50) <= 0.5;
  add({"state per weight, Muon / AdamW", "50 %",
       own.state_ratio ? fmt::format("{:.0f} %", 100 * *own.state_ratio) : "run all layouts",
       !own.state_ratio ? kCantTell
       : half           ? "holds"
                        : "doesn't hold"},
      "elements of one copy of the state, in our own runs");
  add({"the sweet spot is dp 2 × tp 2", "best of 3", "1 of 3", kCantTell},
      "it takes a trace of each grid, and here is one");
  std::vector<std::string> lines;
  const std::vector<std::string> cells = table.lines();
  for (std::size_t i = 0; i < cells.size(); ++i) {
    lines.push_back(cells[i]);
    if (i > 0) lines.push_back(rules[i]);
  }
  append(lines, source_of(read));
  return lines;
}

}  // namespace muonwalk::sim
