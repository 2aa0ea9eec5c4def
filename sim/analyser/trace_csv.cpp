#include "sim/analyser/trace_csv.hpp"

#include <fmt/format.h>

namespace muonwalk::sim {
namespace {

std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string cell(std::optional<double> value) { return value ? fmt::format("{}", *value) : ""; }

std::string line(const std::vector<std::string>& cells) { return fmt::format("{}\n", fmt::join(cells, ",")); }

std::optional<double> as_double(std::optional<std::int64_t> value) {
  return value ? std::optional<double>(static_cast<double>(*value)) : std::nullopt;
}

std::string rank_lines(const RankSummary& rank, const std::string& name) {
  std::string text;
  for (const Figure& figure : figures_of(rank, 1))
    text += line({name, "", "", "", cell(figure.name), cell(figure.value), figure.unit});
  for (const CollectiveLine& of : rank.collectives) {
    const auto add = [&](const char* figure, std::optional<double> value, const char* unit) {
      text += line({name, collective_text(of.collective), cell(of.type), cell(of.group), figure, cell(value), unit});
    };
    add("calls", static_cast<double>(of.calls), "");
    add("sum", static_cast<double>(of.time_ns) / 1e6, "ms");
    add("message bytes", as_double(of.message_bytes), "bytes");
    add("sent bytes", as_double(of.sent_bytes), "bytes");
    add("algbw", of.algorithm_bandwidth(), "GB/s");
    add("busbw", of.bus_bandwidth(), "GB/s");
  }
  return text;
}

}  // namespace

std::string summary_csv(const Summary& summary) {
  std::string text = "rank,collective,type,group,figure,value,unit\n";
  for (const RankSummary& rank : summary.ranks) text += rank_lines(rank, std::to_string(rank.rank));
  if (summary.ranks.size() > 1) text += rank_lines(summary.together, "all");
  return text;
}

std::string comparison_csv(const TraceComparison& comparison) {
  std::string text = "figure,a,b,ratio,unit\n";
  for (const ComparedFigure& figure : comparison.figures)
    text += line({cell(figure.name), cell(figure.a), cell(figure.b), cell(figure.ratio()), figure.unit});
  return text;
}

std::string published_csv(const std::vector<PublishedClaim>& claims) {
  std::string text = "claim,figure,published,recounted,corrected,unit\n";
  for (const PublishedClaim& claim : claims)
    for (const PublishedFigure& figure : claim.figures)
      text += line({cell(claim.title), cell(figure.what), cell(figure.published), cell(figure.recounted),
                    cell(figure.corrected), figure.unit});
  return text;
}

}  // namespace muonwalk::sim
