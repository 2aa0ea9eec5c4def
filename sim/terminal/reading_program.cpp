#include "sim/terminal/reading_program.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <exception>

#include "sim/terminal/end_on_signals.hpp"
#include "sim/terminal/terminal.hpp"
#include "src/errors.hpp"
#include "src/text/names.hpp"

namespace muonwalk::sim {
namespace {

std::string without_end(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '.')) text.pop_back();
  return text;
}

// What the parser found wrong, which may quote words of the command line.
std::string parse_error_text(const CLI::ParseError& error, const std::string& name) {
  std::string reason = without_end(error.what());
  if (dynamic_cast<const CLI::ValidationError*>(&error) != nullptr && reason.find(": ") != std::string::npos)
    return reason.erase(reason.find(": "), 1);
  const std::string unreadable = "Could not convert: ";  // and then "--dp = two"
  const std::size_t equals = reason.find(" = ");
  if (reason.rfind(unreadable, 0) == 0 && equals != std::string::npos)
    return fmt::format("{} {} is not a number of the kind that it takes; {} --help says what works",
                       reason.substr(unreadable.size(), equals - unreadable.size()),
                       as_typed(reason.substr(equals + 3)), name);
  return fmt::format("{}; {} --help says what works", visible_name(reason, 300), name);
}

// What is wrong where the first word is not a command, or there is none.
std::string command_text(const CLI::App& app, int argc, const char* const* argv) {
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands({})) commands.push_back(command->get_name());
  const std::string found = argc > 1 ? fmt::format("{} is not a command", as_typed(argv[1])) : "a command is missing";
  return fmt::format("{}; {} takes {}, and {} --help says what they do", found, app.get_name(),
                     fmt::join(commands, ", "), app.get_name());
}

// No option takes an empty value: where a variable of the shell is empty by mistake, "--lr \"$LR\"" would mean 0, and
// "--params \"$P\"" that it was never given.
void refuse_empty_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 0) continue;  // a flag
    option->check([](const std::string& value) {
      return std::string(value.empty() ? "'' is empty; give it a value, or leave the option out" : "");
    });
  }
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) refuse_empty_values(*command);
}

// "--json=" as well, before the words are parsed: CLI11 would take the next word for the value.
void refuse_empty_values(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--") return;
    if (word.size() < 4 || word.rfind("--", 0) != 0 || word.find('=') != word.size() - 1) continue;
    throw UsageError(fmt::format("{} has an empty value; give it one, or leave the option out", as_typed(word)));
  }
}

}  // namespace

bool parse_command_line(CLI::App& app, int argc, const char* const* argv) {
  refuse_empty_values(app);
  refuse_empty_values(argc, argv);
  try {
    app.parse(argc, argv);
    return true;
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app.get_subcommands();
    print_line(without_end((chosen.empty() ? &app : chosen.front())->help()));
    return false;
  } catch (const CLI::ParseError& error) {
    if (!app.get_subcommands({}).empty() && app.get_subcommands().empty())
      throw UsageError(command_text(app, argc, argv));
    throw UsageError(parse_error_text(error, app.get_name()));
  }
}

void print_as(bool as_json, const std::function<std::string()>& json,
              const std::function<std::vector<std::string>()>& text) {
  if (!as_json) {
    for (const std::string& line : text()) print_line(line);
    return;
  }
  std::string document = json();
  document.pop_back();
  print_line(document);
}

int run_reading_program(const std::string& name, const char* remedy, const std::function<int()>& run) {
  reset_inherited_signals();
  open_standard_files();
  end_on_signals(fmt::format("{}: interrupted; nothing was left behind", name));
  try {
    const int code = run();
    finish_output();
    return code;
  } catch (const UsageError& error) {
    print_error_line(fmt::format("{}: {}", name, error.what()));
    return 2;
  } catch (const std::exception& error) {
    print_error_line(fmt::format("{}: {}", name, error_text(error, remedy)));
  } catch (...) {
    print_error_line(fmt::format("{}: {}", name, kUnknownError));
  }
  return 3;
}

}  // namespace muonwalk::sim
