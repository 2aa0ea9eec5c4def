// The table of costs has to notice a single byte, message, call or element.

#include "sim/classroom/cost_table.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "src/text/text.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

Ledger ledger_with(const Traffic& traffic, std::int64_t calls = 2, CollectiveKind kind = CollectiveKind::all_gather,
                   ElementType type = ElementType::float32, const std::string& group = "dp") {
  Ledger ledger;
  ledger.add(group, kind, type, calls, traffic);
  return ledger;
}

constexpr Traffic kTraffic{1000, 2000, 3, 4};

// Eight ranks of which all was predicted exactly.
std::vector<RankCost> exact() {
  std::vector<RankCost> ranks(8);
  for (RankCost& rank : ranks) {
    rank.predicted = rank.counted = ledger_with(kTraffic);
    rank.predicted_peak = rank.counted_peak = 500;
    rank.header_sent = 96;
    rank.kernel_sent = 1096;
  }
  return ranks;
}

std::string text_of(const CostTable& table) {
  std::string text;
  for (const std::string& line : table.lines) {
    text += line + "\n";
    CHECK(text_width(line) <= output_columns() - 6);  // the lesson puts six columns in front
    CHECK(line.find_last_not_of(' ') == line.size() - 1);
  }
  return text;
}

void expect_difference(const std::string& what, const std::function<void(std::vector<RankCost>&)>& change) {
  for (std::size_t rank : {0, 3, 7}) {
    CAPTURE(what);
    CAPTURE(rank);
    std::vector<RankCost> ranks = exact();
    std::vector<RankCost> one = {ranks[rank]};
    change(one);
    ranks[rank] = one[0];
    const CostTable table = cost_table(ranks);
    const std::string text = text_of(table);
    CAPTURE(text);
    CHECK_FALSE(table.equal);
    CHECK(text.find("✘") != std::string::npos);
    CHECK(text.find("rank " + std::to_string(rank)) != std::string::npos);
  }
}

}  // namespace

TEST_CASE(
    "cost_table: where nobody could ask the kernel a line says why, if there is anything to say; a known count stays") {
  std::vector<RankCost> ranks = exact();
  CHECK(text_of(cost_table(ranks, "of something")).find("of something") == std::string::npos);
  ranks[2].kernel_sent.reset();
  const CostTable table = cost_table(ranks, "of something");
  CHECK(table.equal);
  CHECK(text_of(table).find("  TCP: Linux was not asked, because of something\n") != std::string::npos);
  CHECK(table.lines.size() == 4);
  CHECK(cost_table(ranks).lines.size() == 3);
}

TEST_CASE("cost_table: what was predicted exactly is equal, and equal ranks share a line") {
  const CostTable table = cost_table(exact());
  const std::string text = text_of(table);
  CAPTURE(text);
  CHECK(table.equal);
  CHECK(table.lines.size() == 4);  // heading, all_gather, kernel, peak
  CHECK(text.find("✘") == std::string::npos);
  CHECK(text.find("all_gather over dp, float32 × 2") != std::string::npos);
  CHECK(text.find("every rank") != std::string::npos);
  CHECK(text.find("1,000 B") != std::string::npos);
  CHECK(text.find("96") != std::string::npos);
  CHECK(text.find("1,096 B") != std::string::npos);
}

TEST_CASE("cost_table: one byte, message or call more or less, sent or received, is a difference") {
  for (std::int64_t by : {-1, 1}) {
    const auto with = [by](std::int64_t Traffic::*member) {
      return [by, member](std::vector<RankCost>& one) {
        Traffic traffic = kTraffic;
        traffic.*member += by;
        one[0].counted = ledger_with(traffic);
        if (member == &Traffic::bytes_sent) *one[0].kernel_sent += by;  // or else the kernel's line would find it
      };
    };
    expect_difference("bytes sent", with(&Traffic::bytes_sent));
    expect_difference("bytes received", with(&Traffic::bytes_received));
    expect_difference("messages sent", with(&Traffic::messages_sent));
    expect_difference("messages received", with(&Traffic::messages_received));
    // Where ranks counted the same, and one of them had predicted something else.
    for (std::int64_t Traffic::*member :
         {&Traffic::bytes_sent, &Traffic::bytes_received, &Traffic::messages_sent, &Traffic::messages_received})
      expect_difference("predicted traffic", [by, member](std::vector<RankCost>& one) {
        Traffic traffic = kTraffic;
        traffic.*member += by;
        one[0].predicted = ledger_with(traffic);
      });
    expect_difference("predicted calls",
                      [by](std::vector<RankCost>& one) { one[0].predicted = ledger_with(kTraffic, 2 + by); });
    expect_difference("predicted peak", [by](std::vector<RankCost>& one) { one[0].predicted_peak += by; });
    expect_difference("calls", [by](std::vector<RankCost>& one) { one[0].counted = ledger_with(kTraffic, 2 + by); });
    expect_difference("kernel", [by](std::vector<RankCost>& one) { *one[0].kernel_sent += by; });
    expect_difference("headers", [by](std::vector<RankCost>& one) { one[0].header_sent += by; });
    expect_difference("peak", [by](std::vector<RankCost>& one) { one[0].counted_peak += by; });
  }
}

TEST_CASE("cost_table: a difference that no column shows is told in words") {
  std::vector<RankCost> ranks = exact();
  Traffic traffic = kTraffic;
  traffic.bytes_received += 1;
  ranks[5].counted = ledger_with(traffic);
  const CostTable table = cost_table(ranks);
  const std::string text = text_of(table);
  CAPTURE(text);
  CHECK(text.find("first difference: rank 5") != std::string::npos);
  CHECK(text.find("2001") != std::string::npos);
}

TEST_CASE(
    "cost_table: a line too few, too many, or of another group, kind or type is a difference, also when it is empty") {
  const Traffic nothing;
  expect_difference("missing", [](std::vector<RankCost>& one) {
    one[0].counted = Ledger();
    one[0].kernel_sent = one[0].header_sent;
  });
  expect_difference("not predicted", [](std::vector<RankCost>& one) { one[0].predicted = Ledger(); });
  expect_difference("extra call without bytes", [&](std::vector<RankCost>& one) {
    one[0].counted.add("tp", CollectiveKind::barrier, ElementType::bytes, 1, nothing);
  });
  expect_difference("predicted call without bytes", [&](std::vector<RankCost>& one) {
    one[0].predicted.add("tp", CollectiveKind::barrier, ElementType::bytes, 1, nothing);
  });
  expect_difference("other group", [](std::vector<RankCost>& one) {
    one[0].counted = ledger_with(kTraffic, 2, CollectiveKind::all_gather, ElementType::float32, "tp");
  });
  expect_difference("other kind", [](std::vector<RankCost>& one) {
    one[0].counted = ledger_with(kTraffic, 2, CollectiveKind::broadcast);
  });
  expect_difference("other type", [](std::vector<RankCost>& one) {
    one[0].counted = ledger_with(kTraffic, 2, CollectiveKind::all_gather, ElementType::bfloat16);
  });
}

TEST_CASE("cost_table: without prediction of a peak, or without the kernel's counters, those lines are left out") {
  std::vector<RankCost> ranks = exact();
  for (RankCost& rank : ranks) rank.predicted_peak = -1;
  CHECK(cost_table(ranks).lines.size() == 3);
  CHECK(cost_table(ranks).equal);
  ranks[2].kernel_sent.reset();
  CHECK(cost_table(ranks).lines.size() == 2);
  CHECK(cost_table(ranks).equal);
  ranks[1].predicted_peak = 500;  // predicted for one rank: then for all of them, or it is a difference
  CHECK_FALSE(cost_table(ranks).equal);
}

TEST_CASE("cost_table: where nothing moves, it says so") {
  const CostTable table = cost_table(std::vector<RankCost>(2));
  CHECK(table.equal);
  CHECK(text_of(table).find("nothing") != std::string::npos);
}

TEST_CASE("cost_table: large numbers and scattered ranks stay within the screen") {
  std::vector<RankCost> ranks(64);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const Traffic much{99999990 + static_cast<std::int64_t>(r % 3), 1, 99999, 1};
    ranks[r].predicted = ranks[r].counted =
        ledger_with(much, 99, CollectiveKind::reduce_scatter, ElementType::bfloat16, "dp");
    ranks[r].predicted_peak = ranks[r].counted_peak = 999999999;
  }
  CHECK(cost_table(ranks).lines.size() == 3);
  const CostTable table = cost_table(ranks, "", true);
  CHECK(table.equal);
  const std::string text = text_of(table);
  CAPTURE(text);
  CHECK(text.find(" 99,999,990 B ") != std::string::npos);  // apart from its neighbours
  CHECK(text.find(" 0 and 21 more ") != std::string::npos);
}

TEST_CASE("cost_table: in one line, the bytes and messages of all calls, from the rank that sends least to the most") {
  std::vector<RankCost> ranks = exact();
  const Traffic more{234, 0, 2, 0};
  ranks[5].counted.add("tp", CollectiveKind::all_gather, ElementType::float32, 1, more);
  ranks[5].predicted = ranks[5].counted;
  const std::string sum = cost_table(ranks).sum;
  CAPTURE(sum);
  for (const char* words : {"sent, each call as predicted", "every rank", " 1,000–1,234 B ", " 3–5 ", "✔"})
    CHECK(sum.find(words) != std::string::npos);
}

TEST_CASE(
    "cost_table: ranks that sent other numbers share a line, from the least to the most, unless one is not as "
    "predicted") {
  std::vector<RankCost> ranks = exact();
  for (std::size_t r = 0; r < 4; ++r) {
    const std::int64_t more = static_cast<std::int64_t>(r);
    const Traffic traffic{1000 + 500 * more, 2000, 3 + more, 4};
    ranks[r].predicted = ranks[r].counted = ledger_with(traffic, 2 + more);
    ranks[r].predicted_peak = ranks[r].counted_peak = 500 - more;
    ranks[r].kernel_sent = ranks[r].header_sent + traffic.bytes_sent;
  }
  const CostTable table = cost_table(ranks);
  CHECK(table.equal);
  CHECK(table.lines.size() == 4);
  const std::string text = text_of(table);
  CAPTURE(text);
  for (const char* words : {"all_gather over dp, float32 × 2–5  ", " 1,000–2,500 B ", " 3–6 ",
                            "TCP with headers, as Linux counts it", " 1,096–2,596 B", " 497–500 "})
    CHECK_MESSAGE(text.find(words) != std::string::npos, words);
  CHECK(cost_table(ranks, "", true).lines.size() == 1 + 3 * 4);

  ranks[2].counted_peak += 1;
  const CostTable other = cost_table(ranks);
  CHECK_FALSE(other.equal);
  CHECK(other.lines.size() == 3 + 4);
}

TEST_CASE("cost_table: fits a notebook as well, with the same cells") {
  const auto without_spaces = [](std::string text) {
    text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
    return text;
  };
  const std::string wide = text_of(cost_table(exact()));
  set_output_columns(88);
  const std::string narrow = text_of(cost_table(exact()));
  set_output_columns(kColumns);
  CHECK(narrow != wide);
  CHECK(without_spaces(narrow) == without_spaces(wide));
}
