// The table of strategies: prices, their sum, and who is named.
#include <doctest/doctest.h>

#include <sstream>

#include "lessons/lesson_16_strategies/strategy_tables.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"
#include "src/train/models.hpp"
#include "tests/layout/expect_usage_error.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

std::vector<std::string> lines_of_table(const StrategyCosts& costs, const Price& price) {
  std::istringstream in(strategy_table(costs, Grid().dp(4).tp(2), price));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Its words, with one space between two.
std::string flat_of(const std::string& text) {
  std::string flat;
  std::istringstream split(text);
  for (std::string word; split >> word;) flat += (flat.empty() ? "" : " ") + word;
  return flat;
}

const Price kPrice{{50, 10}, {50, 10}, 400};

// Costs that each come to another power of ten, so that a sum shows which were taken.
StrategyCost cost(double bytes, double messages, double flops) {
  StrategyCost cost;
  cost.most_bytes_sent = bytes;
  cost.mean_bytes_sent = 7 * bytes;
  cost.most_messages_sent = messages;
  cost.most_flops = flops;
  cost.mean_flops = 3 * flops;
  cost.most_kept_bytes = 4096;
  cost.most_transient_bytes = 2500000;
  return cost;
}

bool refused(const std::string& text) {
  return usage_error([&] { parse_price(text); }) ==
         "--price " + in_quotes(text) +
             " is not a price; it takes GB/s above 0, microseconds for each message, and TFLOP/s above 0, for example "
             "50,10,400";
}

}  // namespace

TEST_CASE("--price: three numbers in their order, and nothing else") {
  const Price price = parse_price("50,0,1.5e3");
  for (const LinkPrice& link : {price.dp, price.tp}) {
    CHECK(link.gigabytes_per_second == 50);
    CHECK(link.microseconds == 0);
  }
  CHECK(price.teraflops == 1500);
  for (const char* wrong :
       {"",          "50",        "50,10",   "50,10,",      "50;10;400",  "50,10,400,1", "50,10,400 ",
        "0,10,400",  "50,-1,400", "50,10,0", "-50,10,400",  "nan,10,400", "50,nan,400",  "inf,10,400",
        "50,10,inf", "1e999,1,1", "a,b,c",   "50,10,400\n", "50,,400",    "0x10,1,1"}) {
    CAPTURE(wrong);
    CHECK(refused(wrong));
  }
}

TEST_CASE("the price of a strategy: most bytes, most messages and most operations, each once") {
  // 1 GB at 1 GB/s is 1 s; 100 messages of 1,000 µs are 0.1 s; 10^10 operations at 1 TFLOP/s are 0.01 s.
  const StrategyCosts one = {{gather_everything(), cost(1e9, 100, 1e10)}};
  const std::vector<std::string> lines = lines_of_table(one, {{1, 1000}, {1, 1000}, 1});
  REQUIRE(lines.size() == 3);
  for (const char* word :
       {"(a) gather everything", "1 GB", "100", "10 G", "30 G", "1.00", "4.1 kB", "2.5 MB", "1.11 s"}) {
    CAPTURE(word);
    CHECK(lines[1].find(word) != std::string::npos);
  }
  CHECK(lines[0] == "a step on dp 4 × tp 2  sent  messages  FLOP, most  mean  × the work    kept  passing   price");
  CHECK(lines[2] == "at 1 GB/s, 1000 µs for each message and 1 TFLOP/s: (a) gather everything");
  // Units change where three digits would not do, and times with them.
  const auto cells = [](double bytes, double flops) {
    const StrategyCosts costs = {{gather_everything(), cost(bytes, 0, flops)}};
    std::istringstream words(
        lines_of_table(costs, {{1, 0}, {1, 0}, 1})[1].substr(std::string("(a) gather everything").size()));
    std::vector<std::string> all;
    for (std::string word; words >> word;) all.push_back(word);
    return all;
  };
  using Words = std::vector<std::string>;
  const auto price = [&](double bytes) {
    const Words all = cells(bytes, 0);
    return all[all.size() - 2] + " " + all.back();
  };
  CHECK(price(999) == "0.999 µs");
  CHECK(price(999999) == "1e+03 µs");
  CHECK(price(1e6) == "1 ms");
  CHECK(price(2.5e8) == "250 ms");
  CHECK(price(1e9) == "1 s");
  const auto sent = [&](double bytes) {
    const Words all = cells(bytes, 0);
    return all[0] + " " + all[1];
  };
  CHECK(sent(999) == "999 B");
  CHECK(sent(999.6) == "1 kB");
  CHECK(sent(1.5e6) == "1.5 MB");
  CHECK(sent(2e12) == "2 TB");
  CHECK(sent(3e15) == "3 PB");
  CHECK(sent(4e18) == "4e+03 PB");
}

TEST_CASE("a price: bytes and messages over tp at tp's own links, and the rest at dp's") {
  StrategyCost both = cost(1e9, 100, 0);
  both.most_tp_bytes_sent = 0.75e9;
  both.most_tp_messages_sent = 60;
  const StrategyCosts one = {{gather_everything(), both}};
  // 0.25 s and 0.075 s for bytes, 40 · 1 ms and 60 · 2 ms for messages.
  const std::vector<std::string> lines = lines_of_table(one, {{1, 1000}, {10, 2000}, 1});
  CHECK(lines[1].find("485 ms") != std::string::npos);
  CHECK(lines[2] == "at 1 GB/s over dp and 10 over tp, 1000 µs and 2000 for each message and 1 TFLOP/s:");
  CHECK(lines[3] == "  (a) gather everything");
  const Price on = price_on("h100-ndr", Grid().dp(4).tp(8), expert_layers());
  CHECK(on.dp.gigabytes_per_second == 48.5);
  CHECK(on.tp.gigabytes_per_second == doctest::Approx(370.8));
  CHECK(on.dp.microseconds == doctest::Approx(14));
  CHECK(on.tp.microseconds == doctest::Approx(3.4));
  CHECK(price_on("h100-ndr", Grid().dp(4).tp(2), expert_layers()).dp.gigabytes_per_second == doctest::Approx(370.8));
}

TEST_CASE("the table of a model: the input that decides, and at its break-even both cost the same") {
  // (d) computes half of what (a) does and sends twice as much over dp: 2 s less of work, 1 s more of bytes.
  StrategyCosts costs = {{gather_everything(), cost(1e9, 0, 4e12)}, {owner_by_work(), cost(2e9, 0, 2e12)}};
  const auto said = [&](const Price& price) { return model_table("llama-7b", costs, Grid().dp(4), price, 0); };
  const std::string words =
      "(d) owner, by work is cheaper than (a) gather everything by 1 s: 1 TFLOP/s decides, and they "
      "break even at 2 TFLOP/s.";
  CHECK(flat_of(said({{1, 0}, {1, 0}, 1})).find(words) != std::string::npos);
  CHECK(said({{1, 0}, {1, 0}, 2}).find("costs what") != std::string::npos);
  CHECK(said({{1, 0}, {1, 0}, 4}).find("(a) gather everything is cheaper") != std::string::npos);
  // Where what decides may cost nothing, it is what speaks against the first.
  costs[0].second.most_messages_sent = 1;
  CHECK(flat_of(said({{1, 1.5e6}, {1, 0}, 1}))
            .find("by 2.5 s: 1 TFLOP/s decides, and they break even at 0.286 GB/s over dp") != std::string::npos);
  costs[0].second.most_messages_sent = 0;
  costs[1].second.most_bytes_sent = 1e9;
  CHECK(flat_of(said({{1, 0}, {1, 0}, 1})).find("break even nowhere") != std::string::npos);
}

TEST_CASE("the cheapest strategy with the serial step's bits is named, and the cheapest of all where it has others") {
  StrategyCosts costs = {{gather_everything(), cost(3e6, 0, 0)},
                         {owner_by_work(), cost(2e6, 0, 0)},
                         {all_to_all(), cost(2e6, 0, 0)},
                         {distributed_gram(), cost(4e6, 0, 0)},
                         {block_wise(), cost(4e6, 0, 0)}};
  const auto named = [&] {  // the last line, or two
    const std::vector<std::string> lines = lines_of_table(costs, kPrice);
    return lines.size() == costs.size() + 2 ? lines.back() : lines[lines.size() - 2] + lines.back();
  };
  const std::string words = "at 50 GB/s, 10 µs for each message and 400 TFLOP/s: (d) owner, by work";
  CHECK(named() == words);
  costs[3].second.most_bytes_sent = 1e6;
  CHECK(named() == words + ";  where other bits will do: (g) distributed Gram");
  costs[4].second.most_bytes_sent = 0;
  CHECK(named() == words + ";  where other bits will do: (h) block-wise");
  costs[0].second.most_bytes_sent = 0;  // the first of the cheapest
  CHECK(named() == "at 50 GB/s, 10 µs for each message and 400 TFLOP/s: (a) gather everything");
}

TEST_CASE("the table of a model fits the page, and has all strategies") {
  const Grid grid = Grid().dp(4).tp(2);
  const StrategyCosts costs = costs_of(expert_layers(), grid, 1000, MuonSettings());
  const std::vector<std::string> lines = lines_of_table(costs, kPrice);
  REQUIRE(costs.size() == 8);
  REQUIRE(lines.size() >= 10);
  CHECK(lines.size() <= 11);
  for (const std::string& line : lines) CHECK(text_width(line) <= kColumns);
  for (std::size_t i = 0; i < costs.size(); ++i) {
    CHECK(costs[i].first.letter == 'a' + static_cast<char>(i));
    CHECK(lines[i + 1].find(costs[i].first.name) != std::string::npos);
  }
}
