#include "sim/terminal/empty_values.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>

#include "src/errors.hpp"
#include "src/text/names.hpp"

namespace muonwalk::sim {

void refuse_empty_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 0) continue;  // a flag
    option->check([](const std::string& value) {
      return std::string(value.empty() ? "'' is empty; give it a value, or leave the option out" : "");
    });
  }
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) refuse_empty_values(*command);
}

void refuse_empty_values(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--") return;
    if (word.size() < 4 || word.rfind("--", 0) != 0 || word.find('=') != word.size() - 1) continue;
    throw UsageError(fmt::format("{} has an empty value; give it one, or leave the option out", as_typed(word)));
  }
}

}  // namespace muonwalk::sim
