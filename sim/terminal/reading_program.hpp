#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace muonwalk::sim {

/// What programs share that start no ranks: they read files, print, and write files (muonwalk-trace, muonwalk-scale).
/// parse_command_line is for lessons, too.

/// Parses the command line of `app`, whose name is the program's, with all of its options declared. False where help
/// was asked for, and printed. Throws UsageError, one sentence, for what the app does not take, and for an option with
/// an empty value.
bool parse_command_line(CLI::App& app, int argc, const char* const* argv);

/// Prints a document where `as_json` says so, else lines of text, and works out only what it prints. The document ends
/// with a newline of its own.
void print_as(bool as_json, const std::function<std::string()>& json,
              const std::function<std::vector<std::string>()>& text);

/// Runs `run` and returns its exit code, when all that it printed has been written; 2 after a UsageError and 3 after
/// any other, with a sentence on standard error that begins with `name`. A signal ends the program with a sentence, and
/// files that are not finished yet are gone. `remedy` is what would work where the memory does not suffice.
int run_reading_program(const std::string& name, const char* remedy, const std::function<int()>& run);

}  // namespace muonwalk::sim
