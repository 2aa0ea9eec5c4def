#include "sim/pictures/strip_arrows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/pictures/strip_blocks.hpp"
#include "sim/pictures/svg_parts.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

constexpr double kArrows = 56;  // room for arrows between the columns
constexpr double kBusPitch = 9;
constexpr int kFewestOnBus = 3;  // ranks

std::string arrow_svg(double x0, double y0, double x1, double y1, const std::string& line_class,
                      const std::string& head_class, const std::string& title) {
  const double middle = (x0 + x1) / 2, tip = x1 - 6;
  return fmt::format(
      "<g><title>{0}</title><path d=\"M{1:.1f} {2:.1f}C{3:.1f} {2:.1f} {3:.1f} {4:.1f} {5:.1f} {4:.1f}\" "
      "class=\"{6}\"/><path d=\"M{7:.1f} {4:.1f}l-7 -3.2v6.4z\" class=\"{8}\"/></g>\n",
      xml_text(title), x0, y0, middle, y1, tip, line_class, x1, head_class);
}

// "3 × 40 B" out of a rank: the same to everybody, or the sum.
std::string sent_text(const std::vector<StripArrow>& arrows) {
  long long bytes = 0;
  bool equal = true;
  for (const StripArrow& arrow : arrows) {
    bytes += arrow.bytes;
    equal = equal && arrow.bytes == arrows.front().bytes;
  }
  if (arrows.size() == 1) return short_bytes(bytes);
  return equal ? fmt::format("{} × {}", arrows.size(), short_bytes(bytes / static_cast<long long>(arrows.size())))
               : fmt::format("{} in all", short_bytes(bytes));
}

std::vector<StripArrow> leaving_from(const Strip& strip, int rank) {
  std::vector<StripArrow> leaving;
  for (const StripArrow& arrow : strip.arrows)
    if (arrow.from == rank) leaving.push_back(arrow);
  return leaving;
}

// Ranks that all send to each other, in order, and what each of them sends to another.
struct Bus {
  std::vector<int> ranks;
  const StripArrow* arrow_of(const Strip& strip, int from, int to) const {
    for (const StripArrow& arrow : strip.arrows)
      if (arrow.from == from && arrow.to == to) return &arrow;
    return nullptr;
  }
};

// The ranks that `first` exchanges something with, and itself.
std::vector<int> partners_of(const Strip& strip, int first) {
  std::vector<int> ranks = {first};
  for (const StripArrow& arrow : strip.arrows) {
    if (arrow.from == first) ranks.push_back(arrow.to);
    if (arrow.to == first) ranks.push_back(arrow.from);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

std::vector<Bus> buses_of(const Strip& strip) {
  std::vector<Bus> buses;
  for (int first = 0; first < static_cast<int>(strip.before.size()); ++first) {
    Bus bus{partners_of(strip, first)};
    if (static_cast<int>(bus.ranks.size()) < kFewestOnBus || bus.ranks.front() != first) continue;
    const auto closed = [&](int rank) { return partners_of(strip, rank) == bus.ranks; };
    bool all = std::all_of(bus.ranks.begin(), bus.ranks.end(), closed);
    for (const int from : bus.ranks)
      for (const int to : bus.ranks) all = all && (from == to || bus.arrow_of(strip, from, to) != nullptr);
    if (all) buses.push_back(bus);
  }
  return buses;
}

bool on_a_bus(const std::vector<Bus>& buses, int rank) {
  return std::any_of(buses.begin(), buses.end(), [rank](const Bus& bus) {
    return std::find(bus.ranks.begin(), bus.ranks.end(), rank) != bus.ranks.end();
  });
}

std::string titled(const std::string& title, const std::string& svg) {
  return fmt::format("<g><title>{}</title>{}</g>\n", xml_text(title), svg);
}

// "rank 0 sends 8 B to rank 2 in 1 message, 16 B to rank 4 in 2 messages": all that leaves it or, where that is one
// size, "rank 0 sends 8 B in 1 message to each of ranks 2, 4".
std::string sends_text(const Strip& strip, const Bus& bus, int from) {
  std::vector<std::string> each;
  std::vector<int> others;
  bool equal = true;
  const StripArrow* first = nullptr;
  for (const int to : bus.ranks) {
    if (to == from) continue;
    const StripArrow& arrow = *bus.arrow_of(strip, from, to);
    if (first == nullptr) first = &arrow;
    equal = equal && arrow.bytes == first->bytes && arrow.messages == first->messages;
    others.push_back(to);
    each.push_back(
        fmt::format("{} to rank {} in {}", bytes_text(arrow.bytes), to, count_text(arrow.messages, "message")));
  }
  return equal ? fmt::format("rank {} sends {} in {} to each of ranks {}", from, bytes_text(first->bytes),
                             count_text(first->messages, "message"), fmt::join(others, ", "))
               : fmt::format("rank {} sends {}", from, fmt::join(each, ", "));
}

// A line down at `x`. What a rank sends goes in a little above its middle, in its colour, and what it receives comes
// out below. A dot tells where lines meet from where they only cross.
std::string bus_svg(const Strip& strip, const Bus& bus, const std::vector<RankRow>& rows, double x0, double x,
                    double x1) {
  const auto middle = [&](int rank) { return rows[static_cast<std::size_t>(rank)].middle(); };
  const auto dot = [&](double y) {
    return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.6\" class=\"mw-joint\"/>", x, y);
  };
  constexpr double kApart = 5;
  std::string svg =
      svg_line(x, middle(bus.ranks.front()) - kApart, x, middle(bus.ranks.back()) + kApart, "class=\"mw-bus\"");
  for (const int rank : bus.ranks) {
    const double in = middle(rank) - kApart, out = middle(rank) + kApart;
    svg += titled(
        sends_text(strip, bus, rank),
        fmt::format("<path d=\"M{:.1f} {:.1f}H{:.1f}\" class=\"mw-arrow mw-r{}\"/>", x0, in, x, rank % kColours) +
            dot(in));
    std::vector<int> others = bus.ranks;
    others.erase(std::find(others.begin(), others.end(), rank));
    svg += titled(fmt::format("rank {} receives from ranks {}", rank, fmt::join(others, ", ")),
                  fmt::format("<path d=\"M{:.1f} {:.1f}H{:.1f}\" class=\"mw-bus\"/><path d=\"M{:.1f} {:.1f}l-7 "
                              "-3.2v6.4z\" class=\"mw-joint\"/>",
                              x, out, x1 - 6, x1, out) +
                      dot(out));
  }
  return svg;
}

}  // namespace

double gutter_width(const Strip& strip) {
  int letters = 0;
  for (std::size_t rank = 0; rank < strip.before.size(); ++rank) {
    const std::vector<StripArrow> leaving = leaving_from(strip, static_cast<int>(rank));
    if (!leaving.empty()) letters = std::max(letters, text_width(sent_text(leaving)));
  }
  return kArrows + kBusPitch * static_cast<double>(buses_of(strip).size()) + letters * kLetter;
}

// Arrows end in the order of their senders.
std::string arrows_svg(const Strip& strip, const std::vector<RankRow>& rows, double left, double right) {
  const std::vector<Bus> buses = buses_of(strip);
  const double x1 = right, x0 = x1 - kArrows - kBusPitch * static_cast<double>(buses.size()) + 6;
  const auto stays = [&](std::size_t rank) { return !strip.before[rank].empty() && !strip.after[rank].empty(); };
  std::string svg, words;
  for (std::size_t to = 0; to < rows.size(); ++to) {
    std::vector<const StripArrow*> arriving;
    for (const StripArrow& arrow : strip.arrows)
      if (arrow.to == static_cast<int>(to) && !on_a_bus(buses, arrow.to)) arriving.push_back(&arrow);
    const auto own = std::find_if(arriving.begin(), arriving.end(),
                                  [&](const StripArrow* arrow) { return arrow->from > static_cast<int>(to); });
    if (stays(to)) arriving.insert(own, nullptr);  // what the rank has itself
    for (std::size_t i = 0; i < arriving.size(); ++i) {
      const double room = std::min(rows[to].height - 8, 10.0 * static_cast<double>(arriving.size()));
      const double y =
          rows[to].middle() + room * ((static_cast<double>(i) + 0.5) / static_cast<double>(arriving.size()) - 0.5);
      const StripArrow* arrow = arriving[i];
      if (arrow == nullptr) {
        svg +=
            arrow_svg(x0, rows[to].middle(), x1, y, "mw-stays", "mw-head-stays", fmt::format("stays on rank {}", to));
        continue;
      }
      svg += arrow_svg(x0, rows[static_cast<std::size_t>(arrow->from)].middle(), x1, y,
                       fmt::format("mw-arrow mw-r{}", arrow->from % kColours),
                       fmt::format("mw-head{}", arrow->from % kColours),
                       fmt::format("rank {} sends {} to rank {} in {}", arrow->from, bytes_text(arrow->bytes), to,
                                   count_text(arrow->messages, "message")));
    }
    const std::vector<StripArrow> leaving = leaving_from(strip, static_cast<int>(to));
    if (!leaving.empty())
      words += svg_text(left, rows[to].middle() + 4, fmt::format("mw-head{}", to % kColours), sent_text(leaving));
  }
  for (std::size_t b = 0; b < buses.size(); ++b)
    svg += bus_svg(strip, buses[b], rows, x0, x0 + 14 + kBusPitch * static_cast<double>(b), x1);
  return svg + words;
}

}  // namespace muonwalk::sim
