#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "src/optim/plan.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"

namespace muonwalk {
namespace {

constexpr int kNameWidth = 14;               // of a matrix: what is left of 100 columns beside a large model's numbers
constexpr std::size_t kLongestRepeat = 512;  // operations that are looked for again right behind themselves
constexpr std::size_t kRepeatsWorthFolding = 6;  // operations that a fold must save at least

using Row = std::array<std::string, 5>;  // number, what, matrix, shape or elements, and what it costs

// What an operation adds to a rank's FLOPs or bytes is the fold over it alone.
Row row_of(const Operation& operation, const Plan& plan, const std::vector<std::string>& names, Index& held) {
  if (const Work* work = std::get_if<Work>(&operation))
    return {"", std::string(work->phase),
            work->parameter < 0 ? "" : names.at(static_cast<std::size_t>(work->parameter)),
            work->parameter < 0 ? number_text(work->shape.size()) : shape_text(work->shape.rows, work->shape.cols),
            flops_text(work->flops)};
  if (const Memory* memory = std::get_if<Memory>(&operation)) {
    held += memory->elements;
    return {"", fmt::format("  {} {}", memory->elements < 0 ? "free" : "hold", memory->what), "",
            number_text(memory->elements), number_text(held) + " held"};
  }
  const Call& call = std::get<Call>(operation);
  return {"", fmt::format("  {} {}, {}", collective_name(call.kind), call.group, element_name(call.type)), "",
          number_text(call.elements_in) +
              (call.elements_in == call.elements_out ? "" : " → " + number_text(call.elements_out)),
          bytes_text(ledger_of({plan.grid, plan.place, {operation}}).total().bytes_sent) + " out"};
}

// How the operations that begin at one are printed: the first `block` of them stand for `times` as many.
struct Run {
  std::size_t block = 1;
  std::size_t times = 1;
};

// The repetition that saves the most lines.
Run run_at(const std::vector<int>& kinds, std::size_t first) {
  Run best;
  for (std::size_t block = 1; block <= std::min(kLongestRepeat, (kinds.size() - first) / 2); ++block) {
    std::size_t same = 0;  // operations behind the block that are as those one block before
    while (first + block + same < kinds.size() && kinds[first + same] == kinds[first + block + same]) ++same;
    const std::size_t times = 1 + same / block;
    if (block * (times - 1) > best.block * (best.times - 1) && block * (times - 1) >= kRepeatsWorthFolding)
      best = {block, times};
  }
  return best;
}

std::vector<std::string> names_of(const Layout& layout) {
  const std::map<std::string, std::string> shorter = layout.short_names(kNameWidth);
  std::map<int, std::string> by_number;
  for (const DistMeta& meta : layout.parameters()) by_number[meta.parameter] = shorter.at(meta.name);
  std::vector<std::string> names;
  for (const auto& [number, name] : by_number) names.push_back(name);
  return names;
}

// "ranks 0–1, 6–7"
std::string ranks_of(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    text += (i > 0 ? ", " : "") + range_text({ranks[i], ranks[end - 1] + 1});
    i = end;
  }
  return text;
}

}  // namespace

std::string plan_text(const Plan& plan, const Layout& layout) {
  const std::vector<std::string> names = names_of(layout);
  std::vector<Row> rows;
  std::vector<int> kinds;  // equal where rows are equal but for the matrix
  std::map<Row, int> known;
  Index held = 0;
  for (const Operation& operation : plan.operations) {
    rows.push_back(row_of(operation, plan, names, held));
    Row kind = rows.back();
    kind[2].clear();
    kinds.push_back(known.emplace(kind, static_cast<int>(known.size())).first->second);
    rows.back()[0] = std::to_string(rows.size());
  }

  std::array<int, 5> widths = {};
  for (const Row& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], text_width(row[c]));
  std::string text;
  for (std::size_t first = 0; first < rows.size();) {
    const Run run = run_at(kinds, first);
    for (std::size_t i = first; i < first + run.block; ++i) {
      std::string line = fmt::format("{}  {} {} {} {}", pad_left(rows[i][0], widths[0]),
                                     pad_right(rows[i][1], widths[1]), pad_right(rows[i][2], widths[2]),
                                     pad_left(rows[i][3], widths[3]), pad_left(rows[i][4], widths[4]));
      text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    first += run.block * run.times;
    if (run.times == 1) continue;
    std::string last;  // the matrix that the repetition ends with
    for (std::size_t i = first - run.block; i < first; ++i)
      if (!rows[i][2].empty()) last = rows[i][2];
    text += fmt::format("{}  {} {} more, as the {} above{}\n", pad_left("…", widths[0]), run.times - 1,
                        run.times == 2 ? "time" : "times", count_text(static_cast<Index>(run.block), "operation"),
                        last.empty() ? "" : ", up to " + last);
  }
  return text;
}

std::string plan_text(const std::vector<PlanKind>& kinds, const std::vector<Layout>& stages) {
  std::string text;
  for (const PlanKind& kind : kinds) {
    const Traffic total = ledger_of(kind.plan).total();
    const std::vector<std::string> heading =
        wrap_text(fmt::format("{}: {}, {} to others in {}, {}, at most {} elements held", ranks_of(kind.ranks),
                              count_text(static_cast<Index>(kind.plan.operations.size()), "operation"),
                              bytes_text(total.bytes_sent), count_text(total.messages_sent, "message"),
                              flops(kind.plan) == 0 ? "0 FLOP" : flops_text(flops(kind.plan)),
                              number_text(peak_elements(kind.plan))),
                  2);
    for (const std::string& line : heading) text += line + "\n";
    text += plan_text(kind.plan, stages.at(static_cast<std::size_t>(kind.plan.place.pp))) + "\n";
  }
  text.resize(text.size() - 2);  // nothing stands behind the last line
  return text;
}

}  // namespace muonwalk
