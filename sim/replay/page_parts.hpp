#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sim/replay/palette.hpp"

namespace muonwalk {

/// The parts that pages with pictures are put together from: those of a trace, and maps of clusters. What they say
/// stands in tables, which need no script; what they draw, a script reads as JSON.

/// The colours that every page has, by the names that style sheets and scripts know them by: "paper", "ink", "quiet",
/// "ground" and "edge".
const std::vector<std::pair<const char*, Colour>>& page_shades();

/// A style sheet that begins with these colours as properties, "--paper: #ffffff", for readers who prefer light pages
/// and for those who prefer dark ones: page_shades, "accent" for what has the focus, and `colours`.
std::string coloured_style(std::vector<std::pair<std::string, Colour>> colours, const std::string& css);

/// A colour for a script: {"light": "#ffffff", "dark": "#14171c"}.
nlohmann::json colour_json(Colour colour);

/// JSON that may stand inside of a `<script>`. Bytes that are not UTF-8 are replaced, and no text can end the script.
std::string script_json(const nlohmann::json& data);

/// A row of a table: the first cell is what the row is of; the others are its figures. Cells may be any text.
std::string html_row(const std::vector<std::string>& cells);

/// A table that scrolls by itself where it is wider than its page. `rows` are of html_row; `id` is a plain word.
std::string html_table(const char* id, const std::string& caption, const std::vector<std::string>& headings,
                       const std::string& rows);

/// A list of sentences, which may be any text.
std::string html_list(const char* id, const std::vector<std::string>& sentences);

/// The page with texts in the places that it marks with {{name}}. What is put in is not looked at again, so no name
/// from outside can be taken for a place. Throws RunError for a place without a text.
std::string filled_page(const std::string& page, const std::map<std::string, std::string>& texts);

}  // namespace muonwalk
