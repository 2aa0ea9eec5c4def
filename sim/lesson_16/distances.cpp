#include "sim/lesson_16/distances.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "sim/lesson_16/side_by_side.hpp"
#include "src/optim/serial_muon.hpp"
#include "src/strategies/strategy.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

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

std::string distance_table(const Training& training, const MuonSettings& settings, int dp, Index bucket) {
  SerialMuon muon(training.first_weights(), settings);
  const Course right = course_of(muon, training, dp);
  Index elements = 0;
  for (const NamedMatrix& each : right[0]) elements += each.matrix.size();
  std::vector<std::vector<std::string>> rows = {
      {fmt::format("beside Muon, {} weights", number_text(elements)), "other bits", "apart", "other bits", "apart"}};
  for (const Strategy& strategy : strategies())
    for (const int tp : {2, 4}) {
      if (strategy.is_muon) continue;
      const Layout layout = strategy.lay_out(training.parameters(), Grid().dp(dp).tp(tp), bucket);
      const auto serial = strategy.optimizer(layout, settings, 0)->reference(training.first_weights());
      const Course course = course_of(*serial, training, dp);
      rows.push_back({fmt::format("{}, tp {}", title(strategy), tp)});
      for (const std::size_t step : {1, 2}) {
        const Distance d = distance(course, right, step);
        rows.back().push_back(number_text(d.other_bits));
        rows.back().push_back(d.other_bits == 0 ? "–" : fmt::format("{:.1e}", d.relative));
      }
    }
  rows.insert(rows.begin(), {"", "step 1", "", "step 2", ""});
  return joined_table(rows, 1);
}

}  // namespace muonwalk::sim
