#include "sim/lesson_16/strategy_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "sim/lesson_16/side_by_side.hpp"
#include "src/errors.hpp"
#include "src/strategies/strategy_cost.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"
#include "src/train/published_models.hpp"

namespace muonwalk::sim {
namespace {

// A number with three digits and a unit: "1.23 MB".
std::string with_unit(double number, const char* unit) {
  const char* prefix = "";
  for (const char* larger : {"k", "M", "G", "T", "P"}) {
    if (number < 999.5) break;
    number /= 1000;
    prefix = larger;
  }
  return fmt::format("{:.3g} {}{}", number, prefix, unit);
}

std::string time_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.3g} µs", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} s", seconds);
}

double seconds_of(const StrategyCost& cost, const Price& price) {
  return cost.most_bytes_sent / (price.gigabytes_per_second * 1e9) +
         cost.most_messages_sent * price.microseconds * 1e-6 + cost.most_flops / (price.teraflops * 1e12);
}

}  // namespace

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
  std::vector<std::vector<std::string>> rows = {{fmt::format("a step on {}", grid.text()), "sent", "messages",
                                                 "FLOP, most", "mean", "× the work", "kept", "passing", "price"}};
  const auto price_of = [&price](const auto& each) { return seconds_of(each.second, price); };
  for (const auto& each : costs) {
    const auto& [strategy, cost] = each;
    rows.push_back({title(strategy), with_unit(cost.most_bytes_sent, "B"),
                    number_text(std::llround(cost.most_messages_sent)), with_unit(cost.most_flops, ""),
                    with_unit(cost.mean_flops, ""), fmt::format("{:.2f}", cost.redundancy),
                    with_unit(static_cast<double>(cost.most_kept_bytes), "B"),
                    with_unit(static_cast<double>(cost.most_transient_bytes), "B"), time_text(price_of(each))});
  }
  // The first of the cheapest, among those with the serial step's bits and among all.
  const auto cheaper = [&](const auto& a, const auto& b) { return price_of(a) < price_of(b); };
  const auto others = std::find_if(costs.begin(), costs.end(), [](const auto& each) { return !each.first.is_muon; });
  const auto best = std::min_element(costs.begin(), costs.end(), cheaper);
  const auto best_muon = std::min_element(costs.begin(), others, cheaper);
  std::string text = joined_table(rows, 1) + "\n";
  text += fmt::format("at {:g} GB/s, {:g} µs for each message and {:g} TFLOP/s: {}", price.gigabytes_per_second,
                      price.microseconds, price.teraflops, title(best_muon->first));
  if (best != best_muon) text += fmt::format(";\n  where other bits will do: {}", title(best->first));
  return text;
}

}  // namespace muonwalk::sim
