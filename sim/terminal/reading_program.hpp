#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace muonwalk::sim {

/// What programs share that start no ranks: they read files, print, and write files (muonwalk-trace, muonwalk-scale).

/// Parses the command line of `app`, whose name is the program's, after which no option has an empty value. False where
/// help was asked for, and printed. Throws UsageError, one sentence, for what the app does not take.
bool parse_command_line(CLI::App& app, int argc, const char* const* argv);

/// In which form a program prints what it has to say: text where neither was asked for.
struct OutputFormat {
  bool json = false;  ///< --json
  bool csv = false;   ///< --csv
};

/// Gives a subcommand the options --json and --csv, of which one excludes the other. Both must outlive the parsing.
void add_formats(CLI::App& command, OutputFormat& format);

/// Prints in the form that was asked for, and works out no other one. Documents end with a newline of their own, texts
/// come line by line.
void print_as(const OutputFormat& format, const std::function<std::string()>& json,
              const std::function<std::string()>& csv, const std::function<std::vector<std::string>()>& text);

/// Runs `run` and returns its exit code, when all that it printed has been written; 2 after a UsageError and 3 after
/// any other, with a sentence on standard error that begins with `name`. A signal ends the program with a sentence, and
/// files that are not finished yet are gone. `remedy` is what would work where the memory does not suffice.
int run_reading_program(const std::string& name, const char* remedy, const std::function<int()>& run);

}  // namespace muonwalk::sim
