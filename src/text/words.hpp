#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muonwalk {

/// The parts of a text between separators, "a::b" at ':' as "a", "" and "b"; a text without any is the one part.
inline std::vector<std::string> split_at(std::string_view text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text)
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

/// Whether a text ends with these characters.
inline bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

/// The number that a text is; nothing where it is none, is too large for its type, or is something else besides.
template <class Number>
std::optional<Number> number_from(std::string_view text) {
  Number number = 0;
  const char* end = text.data() + text.size();
  const auto [read_to, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && read_to == end ? std::optional<Number>(number) : std::nullopt;
}

}  // namespace muonwalk
