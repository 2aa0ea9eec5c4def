#include "lessons/lesson_16_strategies/strategy_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

#include "src/errors.hpp"
#include "src/optim/serial_muon.hpp"
#include "src/text/names.hpp"
#include "src/text/table.hpp"
#include "src/train/published_models.hpp"

namespace muonwalk::sim {
namespace {

double seconds_of(const StrategyCost& cost, const Price& price) {
  return cost.most_bytes_sent / (price.gigabytes_per_second * 1e9) +
         cost.most_messages_sent * price.microseconds * 1e-6 + cost.most_flops / (price.teraflops * 1e12);
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
  const bool read = static_cast<bool>(in >> price.gigabytes_per_second >> comma >> price.microseconds >> semicolon >>
                                      price.teraflops);
  const bool sensible = price.gigabytes_per_second > 0 && price.microseconds >= 0 && price.teraflops > 0 &&
                        std::isfinite(price.gigabytes_per_second + price.microseconds + price.teraflops);
  if (!read || comma != ',' || semicolon != ',' || in.peek() != std::istringstream::traits_type::eof() || !sensible)
    throw UsageError(
        fmt::format("--price {} is not a price; it takes GB/s above 0, microseconds for each message, and "
                    "TFLOP/s above 0, for example 50,10,400",
                    in_quotes(text)));
  return price;
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
  text += fmt::format("at {:g} GB/s, {:g} µs for each message and {:g} TFLOP/s: {}", price.gigabytes_per_second,
                      price.microseconds, price.teraflops, title(best_muon->first));
  if (best != best_muon) text += fmt::format(";\n  where other bits will do: {}", title(best->first));
  return text;
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
