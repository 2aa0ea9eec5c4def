// muonwalk-figures LESSON: the data of the figure on a lesson's page, as JSON, from what computes the lesson's tables.

#include <fmt/format.h>

#include <cstdio>
#include <map>

#include "docs/figures/data/figure.hpp"

int main(int argc, char** argv) {
  const std::map<std::string, nlohmann::json (*)()> figures = {{"06", muonwalk::singular_values_figure},
                                                               {"09", muonwalk::full_step_figure},
                                                               {"13", muonwalk::byte_ledger_figure},
                                                               {"14", muonwalk::memory_figure},
                                                               {"15", muonwalk::sharding_figure}};
  const auto figure = argc == 2 ? figures.find(argv[1]) : figures.end();
  if (figure == figures.end()) {
    std::string known;
    for (const auto& each : figures) known += (known.empty() ? "" : ", ") + each.first;
    fmt::print(stderr, "muonwalk-figures takes the number of a lesson that has a figure: {}\n", known);
    return 2;
  }
  const bool written = std::puts(figure->second().dump().c_str()) >= 0 && std::fflush(stdout) == 0;
  if (!written) fmt::print(stderr, "muonwalk-figures can't write to standard output; is the disk full?\n");
  return written ? 0 : 1;
}
