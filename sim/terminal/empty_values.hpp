#pragma once

namespace CLI {
class App;
}

namespace muonwalk::sim {

/// No option takes an empty value: where a variable of the shell is empty by mistake, "--lr \"$LR\"" would mean 0, and
/// "--params \"$P\"" that it was never given. To be called when all options of the program are declared: they, and
/// those of its subcommands, refuse an empty value in a sentence.
void refuse_empty_values(CLI::App& app);

/// Refuses "--html=" as well, before the words are parsed: CLI11 would take the next word for the value. Throws
/// UsageError.
void refuse_empty_values(int argc, const char* const* argv);

}  // namespace muonwalk::sim
