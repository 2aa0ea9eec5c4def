#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace muonwalk {

/// Names that come from outside: of files and tensors, of the events of a trace, values of options. Whoever wrote them
/// may have put line ends, escape sequences, bytes that are not text, or a million characters into them. Whatever
/// prints such a name, in a sentence, a table or a page, takes it from here.

/// A character of a text in UTF-8.
struct Character {
  std::uint32_t code = 0;  ///< Its code point; of one that is not valid, the byte.
  std::size_t bytes = 1;   ///< How many bytes it takes.
  bool valid = false;      ///< Whether it is one.
};

/// The character at the beginning of a text that is not empty. One byte that is not valid where it is not UTF-8: cut
/// off, longer than it need be, a surrogate, or beyond Unicode.
Character first_character(std::string_view text);

/// The most characters of a name that are shown.
constexpr int kNameCharacters = 80;
/// The most names of a list that are shown.
constexpr std::size_t kListedNames = 40;

/// The name as it can stand in a cell of a table or on a page: what can't be seen, moves the cursor or
/// turns the direction of writing is written as "\n", "\x1b" or "\u{202e}", and so is a byte that is not UTF-8. Of a
/// name that takes more than kNameCharacters, the beginning and the end with "…" between, and how many characters it
/// has: "layers.0…weight (300 characters)".
std::string visible_name(const std::string& name);

/// The name in at most `most` characters (at least 3), without how many it has.
std::string visible_name(const std::string& name, int most);

/// The names of a model for a narrow column, each with at most `most` characters (at least 12), by what they are short
/// for: two that differ look different. What all long ones begin with is left out, and so is ".weight"; of what is
/// still too long the middle, but not the part that a matrix is split into; and where two would then be the same, the
/// later ones are numbered: "…0.mlp.up_proj", "…proj~2", "…q_proj[head 0]".
std::map<std::string, std::string> short_names(const std::vector<std::string>& names, int most);

/// Several names with commas between, and how many more there are where they are many: "w, bias and 3 more".
std::string visible_names(const std::vector<std::string>& names);

/// What can be chosen from, at least one: "qkv, heads or none".
std::string alternatives(const std::vector<std::string>& words);

/// The name for a sentence, in quotes: "\"w\"". Quotes and backslashes in the name are preceded by a backslash.
std::string in_quotes(const std::string& name);

/// A value as it can stand behind its option: as it was typed where that is a plain word, '' where empty, else in
/// quotes.
std::string as_typed(const std::string& value);

}  // namespace muonwalk
