// How wide texts are, where they are broken, and how numbers are written: random ones, against a plain count.
#include <doctest/doctest.h>

#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "src/text/names.hpp"
#include "src/text/text.hpp"

using namespace muonwalk;

namespace {

// Random text, and what is known of it.
class Maker {
 public:
  explicit Maker(unsigned seed) : random_(seed) {}
  int draw(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }
  // A word of `width` characters of one to four bytes.
  std::string word(int width) {
    static const std::vector<std::string> letters = {"a", "m", "Z", "0", "é", "×", "–", "█", "…", "𝄞"};
    std::string text;
    for (int i = 0; i < width; ++i) text += letters[static_cast<std::size_t>(draw(0, int(letters.size()) - 1))];
    return text;
  }
  // The same in a colour.
  std::string coloured(const std::string& text) {
    return "\033[" + std::string(draw(0, 1) == 0 ? "1;31" : "32") + "m" + text + "\033[0m";
  }

 private:
  std::mt19937 random_;
};

std::string joined(const std::vector<std::string>& words, const std::string& between) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) text += (i > 0 ? between : "") + words[i];
  return text;
}

// Without spaces at the ends.
std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

std::string spaces(int count) { return std::string(static_cast<std::size_t>(count), ' '); }

}  // namespace

TEST_CASE(
    "text_width: characters count, their bytes and colours do not; what is padded has the width, what is longer "
    "stays") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    Maker make(seed);
    const int width = make.draw(0, 30), wanted = make.draw(0, 40);
    std::string text = make.word(width);
    CHECK(text_width(text) == width);
    if (make.draw(0, 1) == 0) text = make.coloured(text) + make.coloured("");
    CHECK(text_width(text) == width);
    CHECK(text_width(text + "ma") == width + 2);
    CHECK(pad_right(text, wanted) == text + spaces(std::max(0, wanted - width)));
    CHECK(pad_left(text, wanted) == spaces(std::max(0, wanted - width)) + text);

    const int other_width = make.draw(0, 90);
    const std::string other = make.word(other_width);
    const int between = kColumns - width - other_width;
    CHECK(left_and_right(text, other) == text + spaces(std::max(2, between)) + other);
    const std::vector<std::string> lines = aligned_lines(text, other);
    if (between >= 2)
      CHECK(lines == std::vector<std::string>{left_and_right(text, other)});
    else
      CHECK(lines == std::vector<std::string>{text, spaces(kColumns - other_width) + other});
  }
}

TEST_CASE("wrap_text, wrap_items: every word stands once and in order, no line is too long or shorter than need be") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    Maker make(seed);
    std::vector<std::string> words;
    for (int i = make.draw(1, 30); i > 0; --i) words.push_back(make.word(make.draw(1, 9)));
    const int columns = make.draw(20, 60), indent = make.draw(0, 8);

    const std::vector<std::string> lines = wrap_text(joined(words, " "), indent, columns);
    std::vector<std::string> said;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      CHECK(text_width(lines[i]) <= columns);
      CHECK(lines[i].find_first_not_of(' ') == (i == 0 ? 0 : static_cast<std::size_t>(indent)));
      said.push_back(trimmed(lines[i]));
      if (i == 0) continue;
      const std::string next = said[i].substr(0, said[i].find(' '));
      CHECK(text_width(lines[i - 1]) + 1 + text_width(next) > columns);  // it had no room there
    }
    CHECK(joined(said, " ") == joined(words, " "));

    const std::string first = make.word(indent);
    const std::vector<std::string> items = wrap_items(first, words, columns);
    REQUIRE_FALSE(items.empty());
    CHECK(items[0].substr(0, first.size()) == first);
    std::string all;
    for (std::size_t i = 0; i < items.size(); ++i) {
      CHECK(text_width(items[i]) <= columns);
      if (i > 0) CHECK(items[i].substr(0, static_cast<std::size_t>(indent)) == spaces(indent));
      const std::string rest = items[i].substr(i == 0 ? first.size() : static_cast<std::size_t>(indent));
      all += (i > 0 ? " · " : "") + trimmed(rest);  // a line's end stands for " · "
    }
    CHECK(all == joined(words, " · "));
  }
}

TEST_CASE("visible_name: what fits stays; of the rest the beginning and the end, as wide as was asked for") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    Maker make(seed);
    const int width = make.draw(0, 40), room = make.draw(3, 40);
    const std::string text = make.word(width), shown = visible_name(text, room);
    if (width <= room) {
      CHECK(shown == text);
      continue;
    }
    CHECK(text_width(shown) == room);
    bool found = false;  // it is the text's beginning, "…" and the text's end, in nearly equal parts
    for (std::size_t at = shown.find("…"); at != std::string::npos; at = shown.find("…", at + 1)) {
      const std::string begin = shown.substr(0, at), end = shown.substr(at + std::string("…").size());
      found =
          found || (text.compare(0, begin.size(), begin) == 0 && end.size() <= text.size() &&
                    text.substr(text.size() - end.size()) == end && std::abs(text_width(begin) - text_width(end)) <= 1);
    }
    CHECK(found);
  }
}

TEST_CASE("numbers: groups of three, units, shares, and cells of a bar") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    Maker make(seed);
    long long number = make.draw(0, 999);
    for (int i = make.draw(0, 4); i > 0; --i) number = number * 1000 + make.draw(0, 999);
    CAPTURE(number);
    std::string grouped;
    const std::string digits = std::to_string(number);
    for (std::size_t i = 0; i < digits.size(); ++i) {
      if (i > 0 && (digits.size() - i) % 3 == 0) grouped += ',';
      grouped += digits[i];
    }
    CHECK(number_text(number) == grouped);
    CHECK(bytes_text(number) == grouped + " B");
    if (number > 0) CHECK(number_text(-number) == "-" + grouped);
    CHECK(count_text(number, "bucket") == digits + (number == 1 ? " bucket" : " buckets"));

    const int of = make.draw(1, 100), begin = make.draw(0, of - 1), end = make.draw(begin + 1, of);
    CAPTURE(of);
    CAPTURE(begin);
    CAPTURE(end);
    std::string bar;
    for (int cell = 0; cell < 8; ++cell) bar += 8 * begin < (cell + 1) * of && 8 * end > cell * of ? "█" : "·";
    CHECK(bar_text(begin, end, of) == bar);
  }
  CHECK(bar_text(3, 3, 7) == "········");  // an empty part touches nothing
  CHECK(bar_text(0, 8, 8) == "████████");
  CHECK(bar_text(1, 2, 8) == "·█······");
}

TEST_CASE("ranks_text: all, one, those in a row, a few, and many, in 13 columns") {
  CHECK(ranks_text({0, 1, 2, 3}, 4) == "every rank");
  CHECK(ranks_text({2}, 4) == "rank 2");
  CHECK(ranks_text({0, 1, 2, 3}, 5) == "ranks 0–3");
  CHECK(ranks_text({1, 2, 3}, 4) == "ranks 1–3");
  CHECK(ranks_text({0, 2, 5}, 8) == "ranks 0, 2, 5");
  CHECK(ranks_text({0, 2, 4, 6, 8}, 10) == "0 and 4 more");
  CHECK(ranks_text({0}, 1) == "rank 0");
  CHECK(ranks_text({0, 1}, 2) == "every rank");
  CHECK(ranks_text({0, 2, 10}, 12) == "0 and 2 more");  // "ranks 0, 2, 10" takes 14
  CHECK(ranks_text({7, 10}, 12) == "ranks 7, 10");
  CHECK(ranks_text({10, 12}, 20) == "ranks 10, 12");
  for (unsigned seed = 0; seed < 200; ++seed) {
    Maker make(seed);
    std::vector<int> ranks;
    for (int rank = 0; rank < 64; ++rank)
      if (make.draw(0, 5) == 0) ranks.push_back(rank);
    if (!ranks.empty()) CHECK(text_width(ranks_text(ranks, 64)) <= 13);
  }
}

TEST_CASE("output_columns: from 60 to 100, and what breaks or aligns lines keeps to it") {
  for (const auto& [asked, columns] :
       std::vector<std::pair<int, int>>{{-1, 60}, {59, 60}, {60, 60}, {61, 61}, {88, 88}, {100, 100}, {101, 100}}) {
    CAPTURE(asked);
    set_output_columns(asked);
    CHECK(output_columns() == columns);
    CHECK(left_and_right("ab", "c") == "ab" + spaces(columns - 3) + "c");
    const std::string left(static_cast<std::size_t>(columns - 12), 'l');
    CHECK(aligned_lines(left, "0123456789") == std::vector<std::string>{left + "  0123456789"});
    CHECK(aligned_lines(left + "l", "0123456789") ==
          std::vector<std::string>{left + "l", spaces(columns - 10) + "0123456789"});
    Maker make(static_cast<unsigned>(columns));
    for (const int wanted : {30, columns, 1000}) {
      std::vector<std::string> words;
      for (int i = 0; i < 80; ++i) words.push_back(make.word(make.draw(1, 9)));
      const int most = std::min(wanted, columns);
      for (const auto& [between, lines] :
           {std::make_pair(1, wrap_text(joined(words, " "), 4, wanted)), {3, wrap_items("from", words, wanted)}})
        for (std::size_t i = 0; i < lines.size(); ++i) {
          CHECK(text_width(lines[i]) <= most);
          if (i + 1 == lines.size()) continue;
          const std::string next = trimmed(lines[i + 1]);
          CHECK(text_width(lines[i]) + between + text_width(next.substr(0, next.find(' '))) > most);
        }
    }
  }
  set_output_columns(kColumns);
}

TEST_CASE("paragraph: the first line and those below it have indents of their own, and none is longer than the page") {
  std::string text;
  for (int i = 0; i < 60; ++i) text += (i > 0 ? " " : "") + std::string("word");  // 5 columns with the space
  for (const auto& [indent, hanging] : std::vector<std::pair<int, int>>{{0, 0}, {0, 2}, {6, 6}, {10, 10}, {2, 7}}) {
    const std::vector<std::string> lines = paragraph(text, indent, hanging);
    REQUIRE(lines.size() > 2);
    std::vector<std::string> said;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const int begin = i == 0 ? indent : hanging;
      CHECK(lines[i].find_first_not_of(' ') == static_cast<std::size_t>(begin));
      if (i + 1 < lines.size()) CHECK(text_width(lines[i]) == begin + (kColumns - begin + 1) / 5 * 5 - 1);
      said.push_back(trimmed(lines[i]));
    }
    CHECK(joined(said, " ") == text);
  }
  CHECK(paragraph("", 3, 5).empty());
  std::vector<std::string> lines = {"a"};
  append(lines, {"b", "c"});
  CHECK(lines == std::vector<std::string>{"a", "b", "c"});
}

TEST_CASE("numbers_text: all of them where they fit, else as many from both ends, in turn, and one of each at least") {
  for (unsigned seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    Maker make(seed);
    std::vector<float> numbers;
    for (int i = make.draw(0, 12); i > 0; --i) numbers.push_back(static_cast<float>(make.draw(-400, 4000)) / 4);
    const int width = make.draw(0, 60);
    std::vector<std::string> words;
    for (const float number : numbers) {
      char word[32];
      std::snprintf(word, sizeof word, "%g", static_cast<double>(number));
      words.push_back(word);
    }
    std::string expected = joined(words, " ");
    const std::size_t count = words.size();
    if (text_width(expected) > width && count >= 3) {
      for (std::size_t shown = 2; shown < count; ++shown) {  // the first one, the last one, the second one, …
        const std::size_t heads = (shown + 1) / 2, tails = shown / 2;
        std::string text;
        for (std::size_t i = 0; i < heads; ++i) text += words[i] + " ";
        text += "…";
        for (std::size_t i = count - tails; i < count; ++i) text += " " + words[i];
        if (shown > 2 && text_width(text) > width) break;
        expected = text;
      }
    }
    CHECK(numbers_text(numbers, width) == expected);
  }
}
