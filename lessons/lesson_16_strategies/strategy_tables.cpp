#include "lessons/lesson_16_strategies/strategy_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <sstream>

#include "src/errors.hpp"
#include "src/numerics/newton_schulz.hpp"
#include "src/optim/serial_muon.hpp"
#include "src/text/names.hpp"
#include "src/text/table.hpp"
#include "src/text/text.hpp"
#include "src/train/published_models.hpp"
#include "tools/scale/cluster.hpp"
#include "tools/scale/layout_search.hpp"

namespace muonwalk::sim {
namespace {

// The parts of a price, each of which is in proportion to one input's time.
constexpr std::size_t kParts = 5;
using Parts = std::array<double, kParts>;
Parts parts_of(const StrategyCost& cost, const Price& price) {
  const double tp_bytes = cost.most_tp_bytes_sent, tp_messages = cost.most_tp_messages_sent;
  return {(cost.most_bytes_sent - tp_bytes) / (price.dp.gigabytes_per_second * 1e9),
          tp_bytes / (price.tp.gigabytes_per_second * 1e9),
          (cost.most_messages_sent - tp_messages) * price.dp.microseconds * 1e-6,
          tp_messages * price.tp.microseconds * 1e-6, cost.most_flops / (price.teraflops * 1e12)};
}
double seconds_of(const StrategyCost& cost, const Price& price) {
  const Parts parts = parts_of(cost, price);
  return std::accumulate(parts.begin(), parts.end(), 0.0);
}

// An input as words, with its time `factor` times as long.
std::string input_text(std::size_t part, const Price& price, double factor) {
  const double numbers[] = {price.dp.gigabytes_per_second / factor, price.tp.gigabytes_per_second / factor,
                            price.dp.microseconds * factor, price.tp.microseconds * factor, price.teraflops / factor};
  const char* units[] = {"GB/s over dp", "GB/s over tp", "µs for a message over dp", "µs for a message over tp",
                         "TFLOP/s"};
  return fmt::format("{:.3g} {}", numbers[part], units[part]);
}

using Titled = std::pair<Strategy, StrategyCost>;

// Which input decides that one is cheaper than the other, and where they break even: at another value of that input,
// or, where the first is cheaper even if that costs nothing, of the one that speaks most against it.
std::string decision(const Titled& one, const Titled& other, const Price& price) {
  const Parts a = parts_of(one.second, price), b = parts_of(other.second, price);
  std::size_t most = 0, least = 0;
  double all = 0;
  Parts gain{};
  for (std::size_t i = 0; i < kParts; ++i) {
    all += gain[i] = b[i] - a[i];
    if (gain[i] > gain[most]) most = i;
    if (gain[i] < gain[least]) least = i;
  }
  if (all <= 0) return fmt::format("{} costs what {} does.", title(one.first), title(other.first));
  const std::string words = fmt::format("{} is cheaper than {} by {}: {} decides", title(one.first), title(other.first),
                                        seconds_text(all), input_text(most, price, 1));
  const std::size_t at = gain[most] > all * (1 + 1e-9) ? most : least;
  if (gain[at] == 0 || (at == least && gain[least] >= 0)) return words + ", and they break even nowhere.";
  return fmt::format("{}, and they break even at {}.", words, input_text(at, price, 1 - all / gain[at]));
}

// The weights before the first step, and after each of them.
using Course = std::vector<std::vector<NamedMatrix>>;

Course course_of(SerialOptimizer& serial, const Training& training, int dp) {
  Course course = {serial.parameters()};
  for (int step = 0; step < training.steps(); ++step) {
    serial.step(training.all_leaves(step, dp, serial.parameters()));
    course.push_back(serial.parameters());
  }
  return course;
}

// Over all matrices: elements of one after a step that are not the other's, and how far its update is from the other's.
struct Distance {
  Index other_bits = 0;
  double relative = 0;
  std::string text() const { return other_bits == 0 ? "–" : fmt::format("{:.1e}", relative); }
};

Distance distance(const Course& one, const Course& other, std::size_t step) {
  Distance distance;
  double apart = 0, length = 0;
  for (std::size_t p = 0; p < one[step].size(); ++p) {
    const Flat &a = one[step][p].matrix.flat(), &b = other[step][p].matrix.flat();
    const Flat &a_before = one[step - 1][p].matrix.flat(), &b_before = other[step - 1][p].matrix.flat();
    for (std::size_t i = 0; i < a.size(); ++i) {
      distance.other_bits += std::memcmp(&a[i], &b[i], sizeof(float)) != 0;
      const double update = double{b[i]} - b_before[i];
      apart += std::pow((double{a[i]} - a_before[i]) - update, 2);
      length += std::pow(update, 2);
    }
  }
  distance.relative = std::sqrt(apart / length);
  return distance;
}

}  // namespace

std::string title(const Strategy& strategy) { return fmt::format("({}) {}", strategy.letter, strategy.name); }

std::string title(const Strategy& strategy, int step) {
  return fmt::format("({}) after step {}", strategy.letter, step + 1);
}

Price parse_price(const std::string& text) {
  Price price;
  std::istringstream in(text);
  char comma = 0, semicolon = 0;
  LinkPrice& link = price.dp;
  const bool read =
      static_cast<bool>(in >> link.gigabytes_per_second >> comma >> link.microseconds >> semicolon >> price.teraflops);
  const bool sensible = link.gigabytes_per_second > 0 && link.microseconds >= 0 && price.teraflops > 0 &&
                        std::isfinite(link.gigabytes_per_second + link.microseconds + price.teraflops);
  price.tp = price.dp;
  if (!read || comma != ',' || semicolon != ',' || in.peek() != std::istringstream::traits_type::eof() || !sensible)
    throw UsageError(
        fmt::format("--price {} is not a price; it takes GB/s above 0, microseconds for each message, and "
                    "TFLOP/s above 0, for example 50,10,400",
                    in_quotes(text)));
  return price;
}

Price price_on(const std::string& name, const Grid& grid, const std::vector<Parameter>& parameters) {
  const Cluster cluster = cluster_of(name);
  const auto link = [&](int ranks, int stride) {
    const std::vector<int> widths = group_spread(cluster, ranks, stride).widths;
    std::size_t level = 0;
    for (std::size_t l = 0; l < widths.size(); ++l)
      if (widths[l] > 1) level = l;
    const NetworkLevel& of = cluster.levels[level];
    return LinkPrice{of.bytes_per_second / 1e9, of.latency_seconds * 1e6};
  };
  double product = 0;
  for (const Parameter& each : parameters)
    product += newton_schulz_flops(each.shape.rows, each.shape.cols) / 15 / static_cast<double>(parameters.size());
  const Accelerator& device = cluster.accelerator;
  return {link(grid.dp(), grid.tp()), link(grid.tp(), 1),
          device.flops_per_second * product_efficiency(device, product).value / 1e12};
}

StrategyCosts costs_of(const std::vector<Parameter>& parameters, const Grid& grid, Index bucket,
                       const MuonSettings& settings) {
  StrategyCosts costs;
  for (const Strategy& strategy : strategies())
    costs.emplace_back(strategy, strategy_cost(strategy, parameters, grid, bucket, settings));
  return costs;
}

StrategyCosts costs_of_model(const std::string& model, const Grid& grid, const MuonSettings& settings) {
  return costs_of(model_parameters(model), grid, megatron_bucket(grid.dp()), settings);
}

std::string strategy_table(const StrategyCosts& costs, const Grid& grid, const Price& price) {
  const auto bytes = [](double number) { return prefixed_text(number, "B"); };
  const auto operations = [](double number) { return prefixed_text(number, ""); };
  Table table({{fmt::format("a step on {}", grid.text())},
               {"sent", bytes},
               {"messages", number_text},
               {"FLOP, most", operations},
               {"mean", operations},
               {"× the work", Digits{2}},
               {"kept", bytes},
               {"passing", bytes},
               {"price", seconds_text}});
  const auto price_of = [&price](const auto& each) { return seconds_of(each.second, price); };
  for (const auto& each : costs) {
    const auto& [strategy, cost] = each;
    table.row({title(strategy), cost.most_bytes_sent, std::llround(cost.most_messages_sent), cost.most_flops,
               cost.mean_flops, cost.redundancy, static_cast<double>(cost.most_kept_bytes),
               static_cast<double>(cost.most_transient_bytes), price_of(each)});
  }
  // The first of the cheapest, among those with the serial step's bits and among all.
  const auto cheaper = [&](const auto& a, const auto& b) { return price_of(a) < price_of(b); };
  const auto others = std::find_if(costs.begin(), costs.end(), [](const auto& each) { return !each.first.is_muon; });
  const auto best = std::min_element(costs.begin(), costs.end(), cheaper);
  const auto best_muon = std::min_element(costs.begin(), others, cheaper);
  std::string text = table.text() + "\n";
  const LinkPrice &dp = price.dp, &tp = price.tp;
  const bool alike = dp.gigabytes_per_second == tp.gigabytes_per_second && dp.microseconds == tp.microseconds;
  text += fmt::format("at {:.4g} GB/s{}, {:.4g} µs{} for each message and {:.4g} TFLOP/s:{}{}", dp.gigabytes_per_second,
                      alike ? "" : fmt::format(" over dp and {:.4g} over tp", tp.gigabytes_per_second), dp.microseconds,
                      alike ? "" : fmt::format(" and {:.4g}", tp.microseconds), price.teraflops, alike ? " " : "\n  ",
                      title(best_muon->first));
  if (best != best_muon) text += fmt::format(";\n  where other bits will do: {}", title(best->first));
  return text;
}

std::string model_table(const std::string& model, const StrategyCosts& costs, const Grid& grid, const Price& price,
                        std::int64_t batch_tokens) {
  const ModelShape& shape = model_shape(model);
  const int sequences = batch_sequences(shape, grid.size(), {batch_tokens});
  std::vector<std::string> lines;
  const auto say = [&lines](const std::string& sentence) { append(lines, paragraph(sentence, 0, 2)); };
  say(fmt::format("{}, {}", model, batch_text(shape, sequences)));
  lines.push_back(strategy_table(costs, grid, price));
  const auto seconds = [&price](const Titled& each) { return seconds_of(each.second, price); };
  StrategyCosts muon = costs;
  muon.erase(std::find_if(muon.begin(), muon.end(), [](const Titled& each) { return !each.first.is_muon; }),
             muon.end());
  std::stable_sort(muon.begin(), muon.end(), [&](const Titled& a, const Titled& b) { return seconds(a) < seconds(b); });
  // As if all of the price were operations: over those of the model at the same speed.
  TrainingLayout layout;
  layout.dp = grid.dp();
  layout.tp = grid.tp();
  MuonShare share = muon_share(shape, layout, seconds(muon[0]) * price.teraflops * 1e12);
  share.batch_tokens = static_cast<double>(shape.tokens) * sequences;
  say(fmt::format(
      "{} takes {:.3g} % of what the model's own products take at this speed, with gradients and new weights, which "
      "AdamW sends as well; T · m / B = {} · {} / {} = {:.3g} %.",
      title(muon[0].first), 100 * share.all(), share.steps, number_text(std::llround(share.side)),
      number_text(std::llround(share.batch_tokens)), 100 * share.once()));
  say(decision(muon[0], muon[1], price));
  for (const Titled& each : costs)
    if (each.first.letter == 'g')
      say(seconds(each) < seconds(muon[0]) ? decision(each, muon[0], price) : decision(muon[0], each, price));
  return fmt::format("{}", fmt::join(lines, "\n"));
}

std::string distance_table(const Training& training, const MuonSettings& settings, int dp, Index bucket) {
  SerialMuon muon(training.first_weights(), settings);
  const Course right = course_of(muon, training, dp);
  Index elements = 0;
  for (const NamedMatrix& each : right[0]) elements += each.matrix.size();
  Table table({{""}, {"step 1", Side::right}, {"", Side::right}, {"step 2", Side::right}, {"", Side::right}});
  table.row(
      {fmt::format("beside Muon, {} weights", number_text(elements)), "other bits", "apart", "other bits", "apart"});
  for (const Strategy& strategy : strategies())
    for (const int tp : {2, 4}) {
      if (strategy.is_muon) continue;
      const Layout layout = strategy.lay_out(training.parameters(), Grid().dp(dp).tp(tp), bucket);
      const auto serial = strategy.optimizer(layout, settings, 0)->reference(training.first_weights());
      const Course course = course_of(*serial, training, dp);
      const Distance one = distance(course, right, 1), two = distance(course, right, 2);
      table.row({fmt::format("{}, tp {}", title(strategy), tp), number_text(one.other_bits), one.text(),
                 number_text(two.other_bits), two.text()});
    }
  return table.text();
}

}  // namespace muonwalk::sim
