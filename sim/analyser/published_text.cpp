#include <fmt/format.h>

#include "sim/analyser/figure_table.hpp"
#include "sim/analyser/trace_text.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

std::string number(double value, int decimals, const std::string& unit) {
  return fmt::format("{:.{}f}{}", value, decimals, unit.empty() ? "" : " " + unit);
}

std::vector<std::string> claim_lines(const PublishedClaim& claim) {
  std::vector<std::vector<std::string>> rows = {{claim.title, "published", "found again", "", "corrected"}};
  for (const PublishedFigure& figure : claim.figures)
    rows.push_back({"  " + figure.what,
                    figure.published ? number(*figure.published, figure.decimals, figure.unit) : "–",
                    figure.recounted ? number(*figure.recounted, figure.decimals, figure.unit) : "–",
                    !figure.published      ? ""
                    : figure.found_again() ? "✔"
                                           : "✘",
                    number(figure.corrected, figure.corrected_decimals, figure.unit)});
  std::vector<std::string> lines = figure_table(rows, 1);
  append(lines, paragraph("published: " + claim.counted, 2, 4));
  for (const std::string& evidence : claim.evidence) append(lines, paragraph(evidence, 4, 6));
  append(lines, paragraph("corrected: " + claim.corrected, 2, 4));
  append(lines, paragraph(claim.differs, 2, 2));
  return lines;
}

}  // namespace

std::vector<std::string> published_text(const std::vector<PublishedClaim>& claims,
                                        const std::vector<std::string>& paths) {
  std::vector<std::string> lines = {"muonwalk-trace published"};
  append(lines,
         wrap_text("Published: \"Distributed Muon: Field Notes & Reproducibility Artifacts\", Jen Wei, 2025.", 0));
  for (const std::string& path : paths) lines.push_back("  " + path);
  for (const PublishedClaim& claim : claims) {
    lines.push_back("");
    append(lines, claim_lines(claim));
  }
  const auto [figures, found] = found_again(claims);
  lines.push_back("");
  lines.push_back(
      left_and_right(fmt::format("check   {} of {} published figures come out of these traces", found, figures),
                     found == figures ? "✔" : "✘"));
  if (found != figures)
    append(lines,
           wrap_text("These are not the published traces, or not in their order, Muon's before AdamW's: the sentences "
                     "above are about those alone.",
                     0));
  append(
      lines,
      wrap_text(
          "Half the state memory, which was published too, can't be told from a trace: it is one buffer against two by "
          "construction.",
          0));
  return lines;
}

}  // namespace muonwalk::sim
