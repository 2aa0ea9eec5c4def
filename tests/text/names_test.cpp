#include "src/text/names.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "src/text/text.hpp"

using namespace muonwalk;

TEST_CASE("names: an ordinary name stays as it is, in any language") {
  for (const char* name : {"layers.11.mlp.up.weight", "", "dp × tp", "größe", "重み", "🚀", "a b", "C:/x", "<b>&"}) {
    CHECK(visible_name(name) == name);
    CHECK(in_quotes(name) == "\"" + std::string(name) + "\"");
  }
}

TEST_CASE("names: what can't be seen is written as an escape") {
  CHECK(visible_name("a\nb\tc\rd") == "a\\nb\\tc\\rd");
  CHECK(visible_name("\x1b[31mred\x7f") == "\\x1b[31mred\\x7f");
  CHECK(visible_name(std::string("\0", 1)) == "\\x00");
  CHECK(visible_name("\u0085\u009b") == "\\u{85}\\u{9b}");
  CHECK(visible_name("x\u202ecod.exe") == "x\\u{202e}cod.exe");
}

TEST_CASE("names: in quotes, no name can end its quotes") {
  CHECK(in_quotes("a\"; try rm") == "\"a\\\"; try rm\"");
  CHECK(in_quotes("\\") == "\"\\\\\"");
  CHECK(visible_name("\"\\") == "\"\\");
}

TEST_CASE("names: whatever the bytes are, one line of at most 80 characters, and all of it UTF-8") {
  std::mt19937 random(1);
  for (int i = 0; i < 5000; ++i) {
    std::string name;
    for (unsigned length = random() % 200; length > 0; --length) name += static_cast<char>(random());
    for (const std::string& shown : {visible_name(name), in_quotes(name), visible_name(name, 20)}) {
      const std::size_t cut = shown.find(" (");
      CHECK(text_width(shown.substr(0, cut)) <= 82);
      for (const char c : shown) CHECK_FALSE((static_cast<unsigned char>(c) < 0x20 || c == 0x7f));
      CHECK(visible_name(shown, 1000) == shown);  // nothing is left that would have to be made visible
    }
  }
}

TEST_CASE("names: of many, the first ones and how many more") {
  CHECK(visible_names({}).empty());
  CHECK(visible_names({"w", "a\nb"}) == "w, a\\nb");
  std::string forty = "w";
  for (int i = 1; i < 40; ++i) forty += ", w";
  CHECK(visible_names(std::vector<std::string>(40, "w")) == forty);
  CHECK(visible_names(std::vector<std::string>(41, "w")) == forty + " and 1 more");
  CHECK(visible_names(std::vector<std::string>(43, "w")) == forty + " and 3 more");
}

namespace {

// A character as UTF-8, by the table of RFC 3629.
std::string utf8(unsigned code) {
  std::string text;
  const auto add = [&text](unsigned byte) { text += static_cast<char>(byte); };
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  if (code < 0x800) {
    add(0xC0 + code / 64);
  } else if (code < 0x10000) {
    add(0xE0 + code / 4096), add(0x80 + code / 64 % 64);
  } else {
    add(0xF0 + code / 262144), add(0x80 + code / 4096 % 64), add(0x80 + code / 64 % 64);
  }
  add(0x80 + code % 64);
  return text;
}

}  // namespace

TEST_CASE("names: of all characters of Unicode, these and no others are written as escapes") {
  std::string hidden;
  unsigned begin = 0;
  bool inside = false;
  for (unsigned code = 0; code <= 0x110000; ++code) {
    bool escaped = false;
    if (code < 0x110000 && (code < 0xD800 || code > 0xDFFF)) {
      const std::string bytes = utf8(code), shown = visible_name(bytes);
      escaped = shown != bytes;
      const bool short_form = code == 9 || code == 10 || code == 13;
      if (escaped && !short_form && shown != fmt::format(code < 0x80 ? "\\x{:02x}" : "\\u{{{:x}}}", code))
        FAIL(shown << " for the character " << code);
    }
    if (escaped && !inside) begin = code;
    if (!escaped && inside) hidden += fmt::format("{:x}-{:x} ", begin, code - 1);
    inside = escaped;
  }
  CHECK(hidden ==
        "0-1f 7f-9f ad-ad 34f-34f 61c-61c 115f-1160 17b4-17b5 180b-180f 200b-200f 2028-202e 2060-206f 3164-3164 "
        "feff-feff ffa0-ffa0 fff0-fffb fffe-ffff e0000-e0fff ");
}

TEST_CASE("names: a byte needs quotes behind an option unless a shell takes it as it is") {
  const std::string plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=+,@%";
  for (int byte = 0; byte < 256; ++byte) {
    CAPTURE(byte);
    const std::string value = "v" + std::string(1, static_cast<char>(byte));
    const bool bare = plain.find(static_cast<char>(byte)) != std::string::npos;
    CHECK(as_typed(value) == (bare ? value : in_quotes(value)));
  }
  CHECK(as_typed("") == "''");
  CHECK(as_typed(std::string(80, 'a')) == std::string(80, 'a'));
  CHECK(as_typed(std::string(81, 'a')) == in_quotes(std::string(81, 'a')));
}

TEST_CASE("names: of any name the two ends that are shown are as long as there is room for whole characters") {
  const std::vector<std::string> alphabet = {"a", "é", "重", "\n", "\x1b", "\xff", "\"", "\\", "\u200b", "🚀"};
  std::mt19937 random(2);
  for (int i = 0; i < 3000; ++i) {
    std::vector<std::string> pieces;
    std::string name;
    int width = 0;
    for (unsigned length = random() % 60; length > 0; --length) {
      const std::string& one = alphabet[random() % alphabet.size()];
      name += one;
      pieces.push_back(visible_name(one));
      width += text_width(pieces.back());
    }
    const int most = 3 + static_cast<int>(random() % 40);
    CAPTURE(name);
    CAPTURE(most);
    const int head_room = (most - 1) / 2, tail_room = most - 1 - head_room;
    std::string head, tail, all;
    for (const std::string& piece : pieces) all += piece;
    for (std::size_t k = 0; k < pieces.size() && text_width(head + pieces[k]) <= head_room; ++k) head += pieces[k];
    for (std::size_t k = pieces.size(); k > 0 && text_width(pieces[k - 1] + tail) <= tail_room; --k)
      tail.insert(0, pieces[k - 1]);
    CHECK(visible_name(name, most) == (width <= most ? all : head + "…" + tail));
  }
}

TEST_CASE("short_names: those that fit stay; two that differ look different, however narrow the column is") {
  const std::map<std::string, std::string> two = short_names(
      {"model.layers.0.self_attn.q_proj.weight", "model.layers.0.mlp.up_proj.weight", "lm_head.weight"}, 20);
  CHECK(two.at("model.layers.0.self_attn.q_proj.weight") == "…self_attn.q_proj");
  CHECK(two.at("model.layers.0.mlp.up_proj.weight") == "…mlp.up_proj");
  CHECK(two.at("lm_head.weight") == "lm_head.weight");
  const std::string q = "model.layers.0.self_attn.q_proj.weight[head 0]",
                    k = "model.layers.0.self_attn.k_proj.weight[k]";
  const std::map<std::string, std::string> parts = short_names({q, k}, 23);
  CHECK(parts.at(q) == "…q_proj[head 0]");
  CHECK(parts.at(k) == "…k_proj[k]");
  CHECK(short_names({q, "v.weight.other.long.name"}, 23).at(q) == "model.l….q_proj[head 0]");
  CHECK(short_names({q}, 12).at(q) == "model…ead 0]");

  std::mt19937 random(3);
  const std::vector<std::string> words = {"model",  "layers", "0",    "11", "mlp",
                                          "q_proj", "weight", "bias", "\n", "experts[2]"};
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::string> names;
    for (unsigned count = 1 + random() % 30; count > 0; --count) {
      std::string name;
      for (unsigned length = 1 + random() % 8; length > 0; --length)
        name += (name.empty() ? "" : ".") + words[random() % words.size()];
      names.push_back(name);
    }
    const int most = 12 + static_cast<int>(random() % 30);
    CAPTURE(most);
    std::set<std::string> seen;
    const std::map<std::string, std::string> all = short_names(names, most);
    for (const auto& [name, shown] : all) {
      CAPTURE(name);
      CHECK(text_width(shown) <= most);
      CHECK(seen.insert(shown).second);
      if (text_width(visible_name(name)) <= most) CHECK(shown == visible_name(name));
    }
    CHECK(all.size() == std::set<std::string>(names.begin(), names.end()).size());
  }
}
