#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/replay/palette.hpp"

namespace muonwalk {

/// What pages have in common that a program makes from texts of its own, and that need no other file.

/// The page with texts in the places that it marks with {{name}}. What is put in is not looked at again, so no name
/// from outside can be taken for a place. Throws RunError for a place that nothing fills.
std::string filled_page(const std::string& page, const std::map<std::string, std::string>& texts);

/// JSON as it may stand inside of a `<script>`: no text in it can end the script.
std::string script_text(std::string json);

/// Colours as properties of a style sheet, "--paper: #ffffff": first for readers who prefer light pages, then for those
/// who prefer dark ones.
std::string colour_properties(const std::vector<std::pair<std::string, Colour>>& colours);

/// The colours of a page itself, by the names that style sheets and scripts know them by.
constexpr std::pair<const char*, Colour> kPageColours[] = {
    {"paper", kPaper}, {"ink", kInk}, {"quiet", kQuiet}, {"ground", kPadding}, {"edge", kHatch}};

}  // namespace muonwalk
