#include "lessons/lesson_20_pretrain/corpus.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <stdexcept>

#include "tests/io/temporary_folder.hpp"
#include "tests/layout/expect_usage_error.hpp"

using namespace muonwalk;

namespace {

// A text in which every place of 200 in a row looks like no other.
std::vector<std::uint8_t> counted_text(std::size_t bytes) {
  std::vector<std::uint8_t> text;
  for (std::size_t i = 0; i < bytes; ++i) text.push_back(static_cast<std::uint8_t>((i * i + i / 200) % 256));
  return text;
}

Corpus corpus_of(std::size_t bytes, Index sequence, double held_out) {
  return Corpus("text", counted_text(bytes), {sequence, held_out});
}

// Where in the text these tokens stand: the first such place from `begin` on; −1: nowhere.
Index place_of(const std::vector<int>& tokens, const std::vector<std::uint8_t>& text, Index begin = 0) {
  const auto found = std::search(text.begin() + begin, text.end(), tokens.begin(), tokens.end());
  return found == text.end() ? -1 : found - text.begin();
}

}  // namespace

TEST_CASE("Corpus: windows are pieces of the training text, at places that seed, step and number choose") {
  const std::size_t bytes = 997;
  const Corpus corpus = corpus_of(bytes, 20, 0.1);
  std::vector<std::uint8_t> training = counted_text(bytes);
  training.resize(static_cast<std::size_t>(corpus.training_bytes()));
  CHECK(corpus.training_bytes() + corpus.held_out_bytes() == 997);
  CHECK(corpus.held_out_bytes() == 99);
  std::set<std::vector<int>> seen;
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 40})
    for (int step = 1; step <= 20; ++step)
      for (int number = 0; number < 8; ++number) {
        const std::vector<int> window = corpus.window(seed, step, number);
        REQUIRE(window.size() == 21);
        REQUIRE(place_of(window, training) >= 0);
        REQUIRE(window == corpus.window(seed, step, number));
        seen.insert(window);
      }
  CHECK(seen.size() > 300);  // of 480 draws from 878 places, about 370 differ
}

TEST_CASE("Corpus: every place of the training text is drawn about as often as any other, the first and last too") {
  const Corpus corpus("text",
                      [] {
                        std::vector<std::uint8_t> text(30);
                        for (std::size_t i = 0; i < 30; ++i) text[i] = static_cast<std::uint8_t>(i);
                        return text;
                      }(),
                      {4, 0.2});
  REQUIRE(corpus.training_bytes() == 24);  // 20 windows of 5
  std::map<int, int> drawn;
  for (int step = 0; step < 200; ++step)
    for (int number = 0; number < 100; ++number) ++drawn[corpus.window(7, step, number)[0]];
  REQUIRE(drawn.size() == 20);
  CHECK(drawn.begin()->first == 0);
  CHECK(drawn.rbegin()->first == 19);
  for (const auto& [place, times] : drawn) {
    CAPTURE(place);
    CHECK(times > 850);  // of 1000 that are expected, with a standard deviation of 31
    CHECK(times < 1150);
  }
}

TEST_CASE("Corpus: any length: held-out windows predict every byte of the tail but its first, and none of the rest") {
  for (const std::size_t bytes : {100u, 101u, 103u, 119u, 120u, 500u})
    for (const Index sequence : {1, 2, 4, 9}) {
      CAPTURE(bytes);
      CAPTURE(sequence);
      const Corpus corpus = corpus_of(bytes, sequence, 0.1);
      const std::vector<std::uint8_t> text = counted_text(bytes);
      const Index begin = corpus.training_bytes(), end = static_cast<Index>(bytes);
      std::vector<int> predicted(bytes);
      for (int w = 0; w < corpus.held_out_windows(); ++w) {
        const std::vector<int> window = corpus.held_out_window(w);
        REQUIRE(static_cast<Index>(window.size()) == sequence + 1);
        const Index place = std::min(begin + w * sequence, end - sequence - 1);
        REQUIRE(place >= begin);
        for (Index i = 0; i <= sequence; ++i) REQUIRE(window[i] == text[place + i]);
        for (Index i = 1; i <= sequence; ++i) ++predicted[place + i];
      }
      int twice = 0;
      for (Index i = 0; i < end; ++i) {
        REQUIRE((predicted[i] > 0) == (i > begin));
        twice += predicted[i] > 1;
      }
      REQUIRE(twice < sequence);
      CHECK_THROWS_AS(corpus.held_out_window(corpus.held_out_windows()), std::out_of_range);
      CHECK_THROWS_AS(corpus.held_out_window(-1), std::out_of_range);
    }
  CHECK(corpus_of(50, 8, 0).held_out_windows() == 0);
  CHECK(corpus_of(50, 8, 0).training_bytes() == 50);
}

TEST_CASE("Corpus: the digest is that of all bytes, and no other text has it") {
  const Corpus one = corpus_of(400, 8, 0.1);
  CHECK(one.digest().size() == 16);
  CHECK(one.digest() == corpus_of(400, 16, 0.2).digest());
  CHECK(one.digest() != corpus_of(401, 8, 0.1).digest());
  for (const std::size_t place : {0u, 200u, 399u}) {
    std::vector<std::uint8_t> text = counted_text(400);
    text[place] ^= 1;
    CHECK(Corpus("text", text, {8, 0.1}).digest() != one.digest());
  }
  CHECK(Corpus("abc", {'a', 'b', 'c'}, {1, 0}).digest() == "78af5f94892f3950");  // as xxhsum -H3 has it
}

TEST_CASE("Corpus: a file's bytes, whatever they are") {
  const TemporaryFolder folder;
  std::string bytes;
  for (int i = 0; i < 600; ++i) bytes += static_cast<char>(i % 256);
  write_text(folder.file("text"), bytes);
  const Corpus corpus = Corpus::of_file(folder.file("text"), {256, 0.5});
  CHECK(corpus.name() == folder.file("text"));
  CHECK(corpus.training_bytes() == 300);
  const std::vector<int> window = corpus.window(1, 1, 0);
  for (std::size_t i = 1; i < window.size(); ++i) REQUIRE(window[i] == (window[i - 1] + 1) % Corpus::kTokens);
}

TEST_CASE("Corpus: what can't be read or is too short is refused in a sentence") {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& path) { return usage_error([&] { Corpus::of_file(path, {64, 0.1}); }); };
  const std::string missing = folder.file("missing");
  CHECK(refusal(missing) == "--text " + missing + " can't be read: there is no such file; check the path");
  CHECK(refusal(folder.path()) == "--text " + folder.path() + " can't be read: it is a folder; name a file");
  CHECK(refusal("") == "--text '' can't be read: there is no such file; check the path");
  const std::string pipe = folder.file("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(refusal(pipe) == "--text " + pipe + " can't be read: it is not a regular file; name a file of text");
  const std::string empty = folder.file("empty");
  write_text(empty, "");
  CHECK(refusal(empty) == "the part to train on of \"" + empty +
                              "\" has 0 bytes, but a sequence of 64 and the byte behind it take 65; take a longer "
                              "text, or shorter sequences");
  const auto sentence = [](std::size_t bytes, Index sequence, double held_out) {
    return usage_error([&] { corpus_of(bytes, sequence, held_out); });
  };
  const std::string takes_65 =
      " bytes, but a sequence of 64 and the byte behind it take 65; take a longer text, or shorter sequences";
  CHECK(sentence(100, 64, 0.1) == "the part held out of \"text\" has 10" + takes_65);
  CHECK(sentence(64, 64, 0) == "the text of \"text\" has 64" + takes_65);
  CHECK(sentence(1, 1, 0) ==
        "the text of \"text\" has 1 byte, but a sequence of 1 and the byte behind it take 2; take a longer text, or "
        "shorter sequences");
  CHECK_NOTHROW(corpus_of(65, 64, 0));
  CHECK_NOTHROW(corpus_of(130, 64, 0.5));
  CHECK(sentence(129, 64, 0.5).find("the part held out") == 0);
  CHECK(sentence(100, 0, 0.1) == "sequences of 0 tokens make no sense; they take at least 1");
  for (const auto& [wrong, words] : {std::pair(-0.1, "-0.1"), {1.0, "1"}, {2.0, "2"}})
    CHECK(sentence(100, 4, wrong) ==
          std::string(words) + " of a text can't be held out; take a part from 0 to below 1, for example 0.1");
  const Corpus corpus = corpus_of(100, 4, 0.1);
  CHECK_THROWS_WITH_AS(corpus.window(1, -1, 0), "window 0 of step -1 was asked for; both count from 0 or 1",
                       std::out_of_range);
  CHECK_THROWS_WITH_AS(corpus.window(1, 0, -2), "window -2 of step 0 was asked for; both count from 0 or 1",
                       std::out_of_range);
  CHECK_THROWS_WITH_AS(corpus.held_out_window(3), "held-out window 3 of 3 was asked for", std::out_of_range);
}
