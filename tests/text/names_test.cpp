#include "src/text/names.hpp"

#include <doctest/doctest.h>

#include <random>
#include <string>

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
  for (const char* hidden : {"\u200b", "\u200e", "\u2028", "\u2029", "\u2066", "\u2069", "\ufeff", "\U000e0041"})
    CHECK(visible_name(hidden).rfind("\\u{", 0) == 0);
}

TEST_CASE("names: bytes that are not UTF-8 are written as numbers, one by one") {
  CHECK(visible_name("a\xff") == "a\\xff");
  CHECK(visible_name("\xc3") == "\\xc3");                          // cut off
  CHECK(visible_name("\xc0\xaf") == "\\xc0\\xaf");                 // longer than it need be
  CHECK(visible_name("\xe0\x80\xaf") == "\\xe0\\x80\\xaf");        // the same
  CHECK(visible_name("\xed\xa0\x80") == "\\xed\\xa0\\x80");        // a surrogate
  CHECK(visible_name("\xf4\x90\x80\x80").rfind("\\xf4", 0) == 0);  // beyond Unicode
  CHECK(visible_name("\xe2\x82z") == "\\xe2\\x82z");
}

TEST_CASE("names: in quotes, no name can end its quotes") {
  CHECK(in_quotes("a\"; try rm") == "\"a\\\"; try rm\"");
  CHECK(in_quotes("\\") == "\"\\\\\"");
  CHECK(visible_name("\"\\") == "\"\\");
}

TEST_CASE("names: 80 characters are shown whole, of more the two ends and how many there are") {
  CHECK(visible_name(std::string(80, 'a')) == std::string(80, 'a'));
  CHECK(visible_name(std::string(40, 'a') + std::string(41, 'z')) ==
        std::string(39, 'a') + "…" + std::string(40, 'z') + " (81 characters)");
  CHECK(in_quotes(std::string(1000000, 'a')) ==
        "\"" + std::string(39, 'a') + "…" + std::string(40, 'a') + "\" (1000000 characters)");
  std::string wide;
  for (int i = 0; i < 81; ++i) wide += "重";
  CHECK(text_width(visible_name(wide)) == 80 + 16);
  CHECK(visible_name("layers.11.mlp.up.weight", 11) == "layer…eight");
  CHECK(visible_name("\n\n\n\n\n\n", 5) == "\\n…\\n");
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

TEST_CASE("names: a value behind its option is as it was typed, unless that can't be seen") {
  CHECK(as_typed("") == "''");
  CHECK(as_typed("dp_2-x.json") == "dp_2-x.json");
  CHECK(as_typed("two words") == "\"two words\"");
  CHECK(as_typed("a\nb") == "\"a\\nb\"");
  CHECK(as_typed(std::string(81, 'a')).find("(81 characters)") != std::string::npos);
}

TEST_CASE("names: of many, the first ones and how many more") {
  CHECK(visible_names({}).empty());
  CHECK(visible_names({"w", "a\nb"}) == "w, a\\nb");
  CHECK(visible_names(std::vector<std::string>(kListedNames + 3, "w")).find("w and 3 more") != std::string::npos);
}

TEST_CASE("names: no cell of CSV is a formula, and numbers stay numbers") {
  CHECK(csv_cell("plain") == "plain");
  CHECK(csv_cell("a,\"b\"") == "\"a,\"\"b\"\"\"");
  for (const char* formula : {"=1+1", "+cmd", "-cmd", "@sum", "\t=1", "-", "-1+1|x", "=\"a\"", "-0x10", "-inf", "+nan"})
    CHECK(csv_cell(formula).find('\'') <= 1);
  for (const char* number : {"-1", "+2.5", "-1e-3", "-0.25"}) CHECK(csv_cell(number) == number);
}
