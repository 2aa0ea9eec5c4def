#pragma once

#include <string>
#include <vector>

#include "tools/check/dump.hpp"
#include "tools/check/verdict.hpp"

namespace muonwalk::check {

/// "clean", "unknown", "differs", "unjudgeable".
const char* verdict_name(Verdict verdict);

/// What muonwalk-check prints: the verdict of the whole, each parameter's, and what was found, with what the catalogue
/// of bugs knows about it.
std::vector<std::string> verdict_text(const DumpVerdict& verdict);

/// The same as JSON, as docs/check-verdict.md describes it, with a newline at its end.
std::string verdict_json(const DumpVerdict& verdict);

/// A page that needs no other file and no network: what is printed, and a map of each parameter, with the part of each
/// rank of `step`, coloured by how far it is from the nearest recipe.
std::string verdict_page(const DumpVerdict& verdict, const DumpedStep& step);

}  // namespace muonwalk::check
