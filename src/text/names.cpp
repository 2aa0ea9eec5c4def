#include "src/text/names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "src/text/text.hpp"

namespace muonwalk {
namespace {

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

struct Range {
  std::uint32_t first, last;
};

// Control characters, and those that take no place, break lines, or turn the direction of writing.
constexpr Range kHidden[] = {{0x00, 0x1F},     {0x7F, 0x9F},      {0xAD, 0xAD},     {0x034F, 0x034F}, {0x061C, 0x061C},
                             {0x115F, 0x1160}, {0x17B4, 0x17B5},  {0x180B, 0x180F}, {0x200B, 0x200F}, {0x2028, 0x202E},
                             {0x2060, 0x206F}, {0x3164, 0x3164},  {0xFEFF, 0xFEFF}, {0xFFA0, 0xFFA0}, {0xFFF0, 0xFFFB},
                             {0xFFFE, 0xFFFF}, {0xE0000, 0xE0FFF}};

bool is_hidden(std::uint32_t code) {
  return std::any_of(std::begin(kHidden), std::end(kHidden),
                     [code](const Range& range) { return range.first <= code && code <= range.last; });
}

std::string shown(std::string_view bytes, const Character& character, bool quoted) {
  const std::uint32_t code = character.code;
  if (!character.valid) return fmt::format("\\x{:02x}", code);
  if (quoted && (code == '"' || code == '\\')) return std::string("\\") + static_cast<char>(code);
  if (!is_hidden(code)) return std::string(bytes);
  if (code == '\n') return "\\n";
  if (code == '\t') return "\\t";
  if (code == '\r') return "\\r";
  return code < 0x80 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{{{:x}}}", code);
}

// A name of which every character can be seen. Of a long one, its two ends, and how many characters it has.
struct Shown {
  std::string text;
  long long left_out_of = 0;  // 0: it is whole
};

Shown shown_name(const std::string& name, int most, bool quoted) {
  Shown whole;
  // The end of a name such as "layers.11.mlp.up.weight" tells more than its middle.
  const int head_room = (most - 1) / 2;
  const int tail_room = most - 1 - head_room;
  std::string head;
  std::vector<std::string> tail;  // a ring of the last pieces, each at least one character wide
  long long characters = 0;
  int width = 0, head_width = 0;
  bool head_is_full = false;
  for (std::string_view rest = name; !rest.empty(); ++characters) {
    const Character character = first_character(rest);
    const std::string piece = shown(rest.substr(0, character.bytes), character, quoted);
    rest.remove_prefix(character.bytes);
    const int wide = text_width(piece);
    width = std::min(width + wide, most + 1);
    if (width <= most) whole.text += piece;
    head_is_full = head_is_full || head_width + wide > head_room;
    if (!head_is_full) head_width += wide, head += piece;
    if (tail.size() < static_cast<std::size_t>(tail_room)) tail.emplace_back();
    tail[static_cast<std::size_t>(characters) % static_cast<std::size_t>(tail_room)] = piece;
  }
  if (width <= most) return whole;
  std::string end;
  for (long long back = 1; back <= static_cast<long long>(tail.size()); ++back) {
    const std::string& piece = tail[static_cast<std::size_t>(characters - back) % static_cast<std::size_t>(tail_room)];
    if (text_width(end) + text_width(piece) > tail_room) break;
    end.insert(0, piece);
  }
  return {head + "…" + end, characters};
}

std::string with_length(const std::string& text, long long characters) {
  return characters == 0 ? text : fmt::format("{} ({} characters)", text, characters);
}

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-_./:=+,@%").find(c) != std::string_view::npos;
}

}  // namespace

Character first_character(std::string_view text) {
  const unsigned char first = static_cast<unsigned char>(text[0]);
  Character character;
  character.code = first;
  character.valid = first < 0x80;
  if (character.valid || first < 0xC2 || first > 0xF4) return character;
  const std::size_t bytes = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (text.size() < bytes) return character;
  std::uint32_t code = first & (0xFFu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if (!continues_character(text[i])) return character;
    code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3Fu);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[bytes] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return character;
  return {code, bytes, true};
}

std::string visible_name(const std::string& name) {
  const Shown shown = shown_name(name, kNameCharacters, false);
  return with_length(shown.text, shown.left_out_of);
}

std::string visible_name(const std::string& name, int most) { return shown_name(name, std::max(most, 3), false).text; }

std::map<std::string, std::string> short_names(const std::vector<std::string>& names, int most) {
  const auto fits = [most](const std::string& name) { return text_width(visible_name(name)) <= most; };
  std::string begin;  // of all long ones, up to and with a dot
  int long_ones = 0;
  for (const std::string& name : names) {
    if (fits(name)) continue;
    if (++long_ones == 1) begin = name.substr(0, name.rfind('.') + 1);
    while (!begin.empty() && name.rfind(begin, 0) != 0)
      begin = begin.substr(0, begin.size() < 2 ? 0 : begin.rfind('.', begin.size() - 2) + 1);
  }
  if (long_ones == 1) begin.clear();  // which begins like no other
  const std::string weight = ".weight";
  std::map<std::string, std::string> all;
  std::set<std::string> taken;
  for (const bool cut : {false, true})
    for (const std::string& name : names) {
      if (fits(name) == cut || all.count(name) > 0) continue;
      std::string shorter = name, piece;
      if (cut) {
        const std::size_t bracket = ends_with(name, "]") ? name.rfind('[') : std::string::npos;
        if (bracket != std::string::npos && bracket > begin.size()) piece = visible_name(name.substr(bracket));
        if (text_width(piece) > most - 12) piece.clear();  // there is no room for it
        shorter = name.substr(0, piece.empty() ? std::string::npos : bracket);
        if (shorter.size() > weight.size() + begin.size() && ends_with(shorter, weight))
          shorter.resize(shorter.size() - weight.size());
        shorter.replace(0, begin.size(), begin.empty() ? "" : "…");
      }
      std::string shown = visible_name(shorter, most - text_width(piece)) + piece;
      for (int number = 2; !taken.insert(shown).second; ++number) {
        const std::string mark = fmt::format("~{}", number);
        shown = visible_name(shorter, most - text_width(piece + mark)) + piece + mark;
      }
      all[name] = shown;
    }
  return all;
}

std::string alternatives(const std::vector<std::string>& words) {
  if (words.size() == 1) return words[0];
  return fmt::format("{} or {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
}

std::string visible_names(const std::vector<std::string>& names) {
  std::string text;
  const std::size_t listed = std::min(names.size(), kListedNames);
  for (std::size_t i = 0; i < listed; ++i) text += (i == 0 ? "" : ", ") + visible_name(names[i]);
  return listed == names.size() ? text : fmt::format("{} and {} more", text, names.size() - listed);
}

std::string in_quotes(const std::string& name) {
  const Shown shown = shown_name(name, kNameCharacters, true);
  return with_length("\"" + shown.text + "\"", shown.left_out_of);
}

std::string as_typed(const std::string& value) {
  if (value.empty()) return "''";
  const bool plain = value.size() <= kNameCharacters && std::all_of(value.begin(), value.end(), is_plain);
  return plain ? value : in_quotes(value);
}

}  // namespace muonwalk
