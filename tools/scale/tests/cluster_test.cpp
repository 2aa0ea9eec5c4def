// Clusters: what a measured curve says between its points and outside of them, how groups lie in a cluster, the
// presets, and files, good and bad ones.

#include "tools/scale/cluster.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "src/errors.hpp"
#include "src/text/text.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/layout/expect_usage_error.hpp"
#include "tests/near.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using nlohmann::json;

namespace {

// What usage_error says where a file is taken.
const std::string kAccepted = "(no UsageError)";

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// What a file of the folder clusters/ says.
json known_cluster(const std::string& name) {
  return json::parse(read_text(std::string(MUONWALK_ROOT) + "/tools/scale/clusters/" + name + ".json"));
}

// A file of a cluster, as a reader writes it.
json random_cluster(unsigned seed) {
  std::mt19937 random(seed);
  const auto number = [&] {
    return std::round(std::exp(std::uniform_real_distribution<>(-5, 8)(random)) * 1e4) / 1e4 + 1e-4;
  };
  const auto curve = [&](const char* at, const char* value, double most) {
    json points = json::array();
    double x = 0;
    for (int i = 0; i < 3; ++i) points.push_back({{at, x += number()}, {value, std::fmin(number(), most)}});
    return json{{"source", "somebody"}, {"points", points}};
  };
  json cluster = {{"name", "random " + std::to_string(seed)}, {"levels", json::array()}};
  cluster["accelerator"] = {{"name", "chip"},
                            {"peak_tflop_per_s", number()},
                            {"memory_gib", number()},
                            {"memory_bandwidth_gb_per_s", number()},
                            {"source", "a data sheet"}};
  // None, one, or a list of them.
  json& efficiency = cluster["accelerator"]["product_efficiency"] = json::array();
  for (unsigned i = 0; i < seed % 4; ++i) efficiency.push_back(curve("gflop", "share_of_peak", 1));
  if (seed % 4 == 1) cluster["accelerator"]["product_efficiency"] = json(efficiency[0]);
  if (seed % 4 == 0) cluster["accelerator"].erase("product_efficiency");
  int joined = 1;
  for (unsigned l = 0; l < 1 + seed % 3; ++l) {
    json level = {{"name", "level " + std::to_string(l)},
                  {"bandwidth_gb_per_s", number()},
                  {"latency_us", number()},
                  {"source", "a cable"}};
    if (l > 0 && l == seed % 3 && seed % 4 != 0)
      level["accelerators_joined"] = "all";
    else
      level["accelerators_joined"] = joined *= 2 + static_cast<int>(random() % 7);
    for (const char* collective : {"all_reduce", "all_gather"})
      if (random() % 2 == 0) level[collective] = curve("units", "bus_bandwidth_gb_per_s", 1e9);
    cluster["levels"].push_back(level);
  }
  return cluster;
}

// Whether a curve is that of a file, each number times its unit; none where the file has none.
bool same_points(const MeasuredCurve& curve, const json& of, const char* at, double at_unit, const char* value,
                 double value_unit) {
  const json& points = of["points"];
  bool same = curve.points.size() == points.size() && curve.source == of["source"];
  for (std::size_t i = 0; same && i < points.size(); ++i)
    same = curve.points[i].at == points[i][at].get<double>() * at_unit &&
           curve.points[i].value == points[i][value].get<double>() * value_unit;
  return same;
}
bool same_curve(const MeasuredCurve& curve, const json& of, const char* name, const char* at, double at_unit,
                const char* value, double value_unit) {
  return of.contains(name) ? same_points(curve, of[name], at, at_unit, value, value_unit) : !curve.measured();
}

// Checks that a cluster has every number of its file, times its unit.
void check_cluster(const Cluster& cluster, const json& file) {
  CHECK(cluster.name == file["name"]);
  const json& chip = file["accelerator"];
  CHECK(cluster.accelerator.name == chip["name"]);
  CHECK(cluster.accelerator.flops_per_second == chip["peak_tflop_per_s"].get<double>() * 1e12);
  CHECK(cluster.accelerator.memory_bytes == chip["memory_gib"].get<double>() * kGibibyte);
  CHECK(cluster.accelerator.memory_bytes_per_second == chip["memory_bandwidth_gb_per_s"].get<double>() * 1e9);
  CHECK(cluster.accelerator.source == chip["source"]);
  json efficiency = chip.value("product_efficiency", json::array());
  if (efficiency.is_object()) efficiency = json::array({efficiency});
  REQUIRE(cluster.accelerator.product_efficiency.size() == efficiency.size());
  for (std::size_t i = 0; i < efficiency.size(); ++i)
    CHECK(same_points(cluster.accelerator.product_efficiency[i], efficiency[i], "gflop", 1e9, "share_of_peak", 1));
  REQUIRE(cluster.levels.size() == file["levels"].size());
  for (std::size_t l = 0; l < cluster.levels.size(); ++l) {
    const NetworkLevel& level = cluster.levels[l];
    const json& of = file["levels"][l];
    CHECK(level.name == of["name"]);
    CHECK(level.accelerators == (of["accelerators_joined"] == "all" ? 0 : of["accelerators_joined"].get<int>()));
    CHECK(level.bytes_per_second == of["bandwidth_gb_per_s"].get<double>() * 1e9);
    CHECK(level.latency_seconds == of["latency_us"].get<double>() * 1e-6);
    CHECK(level.source == of["source"]);
    CHECK(same_curve(level.all_reduce, of, "all_reduce", "units", 1, "bus_bandwidth_gb_per_s", 1e9));
    CHECK(same_curve(level.all_gather, of, "all_gather", "units", 1, "bus_bandwidth_gb_per_s", 1e9));
  }
}

// Every place in a JSON text that holds a number or a text.
std::vector<json::json_pointer> leaves(const json& root) {
  std::vector<json::json_pointer> all;
  const json flat = root.flatten();
  for (const auto& [path, value] : flat.items()) all.emplace_back(path);
  return all;
}

// The last name in a place, as sentences quote it: /levels/0/latency_us is "levels[0].latency_us".
std::string quoted(const json::json_pointer& place) {
  std::string text;
  for (json::json_pointer rest = place; !rest.empty(); rest = rest.parent_pointer()) {
    const std::string part = rest.back();
    const bool number = part.find_first_not_of("0123456789") == std::string::npos;
    text = (number ? "[" + part + "]" : (rest.parent_pointer().empty() ? part : "." + part)) + text;
  }
  return text;
}

}  // namespace

TEST_CASE("a curve gives its points, lies between two of them, and says where it was not measured") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::uniform_real_distribution<> real(0.1, 10);
    std::vector<MeasuredCurve::Point> points;
    double at = 0;
    for (unsigned i = 0; i < 1 + seed % 5; ++i) points.push_back({at += real(random), real(random)});
    const MeasuredCurve curve{points, "somebody"};
    for (std::size_t i = 0; i < points.size(); ++i) {
      CHECK(curve.at(points[i].at).value == points[i].value);
      CHECK_FALSE(curve.at(points[i].at).outside);
      if (i == 0) continue;
      const CurveReading middle = curve.at(std::sqrt(points[i - 1].at * points[i].at));
      CHECK(middle.value == near(std::sqrt(points[i - 1].value * points[i].value)));
      CHECK_FALSE(middle.outside);
    }
    for (const auto& [where, nearest] : {std::pair{points.front().at / 2, points.front()}, {at * 3, points.back()}}) {
      const CurveReading reading = curve.at(where);
      REQUIRE(reading.outside);
      CHECK(reading.outside->at == where);
      CHECK(reading.value == nearest.value);
      CHECK(reading.outside->nearest == nearest.at);
    }
  }
  CHECK_THROWS_AS(MeasuredCurve().at(1), std::invalid_argument);
  for (const double no_place : {0.0, -1.0, std::nan(""), HUGE_VAL})
    CHECK_THROWS_AS((MeasuredCurve{{{1, 1}}, "somebody"}.at(no_place)), std::invalid_argument);
  CHECK_FALSE(MeasuredCurve().measured());
}

TEST_CASE("group_spread: every rank is somewhere, and links are shared by as many groups as there are") {
  for (const std::string& name : cluster_names()) {
    const Cluster cluster = cluster_of(name);
    for (int tp = 1; tp <= 2 * cluster.node(); tp *= 2)
      for (int dp = 1; dp <= 64; dp *= 2) {
        CAPTURE(name);
        CAPTURE(tp);
        CAPTURE(dp);
        if (cluster.node() % tp != 0 && tp % cluster.node() != 0) continue;
        if (tp < cluster.node() && tp * dp < cluster.node() && cluster.node() % (tp * dp) != 0) continue;
        if (tp < cluster.node() && tp * dp > cluster.node() && (tp * dp) % cluster.node() != 0) continue;
        for (const auto& [ranks, stride] : {std::pair{tp, 1}, {dp, tp}}) {
          const GroupSpread spread = group_spread(cluster, ranks, stride);
          // Counted rank by rank: in which node each of them is.
          std::vector<int> in_node(static_cast<std::size_t>(ranks * stride / cluster.node() + 1));
          for (int i = 0; i < ranks; ++i) ++in_node[static_cast<std::size_t>(i * stride / cluster.node())];
          CHECK(spread.widths[0] == in_node[0]);
          CHECK(spread.widths[0] * spread.widths[1] == ranks);
          CHECK(spread.inside[1] == spread.widths[0]);
          CHECK(spread.sharing[0] == 1);
          CHECK(spread.sharing[1] == cluster.node() / in_node[0]);
        }
      }
  }
}

TEST_CASE("group_spread refuses groups that lie unevenly, and those that are too large") {
  Cluster cluster = cluster_of("h100-efa");
  CHECK(holds(usage_error([&] { group_spread(cluster, 3, 1); }),
              "3 ranks with a stride of 1 do not fit evenly into the 8"));
  CHECK(holds(usage_error([&] { group_spread(cluster, 4, 3); }), "do not fit evenly"));
  CHECK(holds(usage_error([&] { group_spread(cluster, 12, 1); }), "do not fit evenly"));
  cluster.levels.back().accelerators = 32;
  CHECK(group_spread(cluster, 32, 1).widths[1] == 4);
  CHECK(holds(usage_error([&] { group_spread(cluster, 64, 1); }), "joins 32 accelerators and no more"));
  CHECK_THROWS_AS(group_spread(cluster, 0, 1), std::invalid_argument);
  CHECK_THROWS_AS(group_spread(cluster, 1, 0), std::invalid_argument);
}

TEST_CASE("every cluster with a name is the one of its file, and has a level outside that joins all") {
  for (const std::string& name : cluster_names()) {
    CAPTURE(name);
    const Cluster cluster = cluster_of(name);
    CHECK(cluster.name == name);
    CHECK(cluster.levels.back().accelerators == 0);
    check_cluster(cluster, known_cluster(name));
  }
  CHECK(holds(usage_error([] { cluster_of("h100"); }), "no cluster is called \"h100\"; take a100-selene, "));
}

TEST_CASE("any cluster is read from its file as that says, to the bit") {
  const TemporaryFolder folder;
  const std::string path = folder.file("it.json");
  for (unsigned seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    const json file = random_cluster(seed);
    write_text(path, file.dump());
    check_cluster(cluster_of(path), file);
  }
}

TEST_CASE("a file in which a field is missing, unknown or no good is refused in a sentence that names file and field") {
  const TemporaryFolder folder;
  const std::string path = folder.file("my cluster.json");
  const auto refused = [&](const std::string& text, const std::string& part) {
    write_text(path, text);
    const std::string sentence = usage_error([&] { cluster_of(path); });
    CAPTURE(text);
    CAPTURE(sentence);
    CHECK(holds(sentence, "my cluster.json\" can't be used: "));
    CHECK(holds(sentence, part));
    CHECK_FALSE(holds(sentence, "\n"));
  };
  int places = 0;
  for (const json& good : {known_cluster("h100-efa"), known_cluster("a100-selene"), known_cluster("epyc-vm")}) {
    for (const json::json_pointer& place : leaves(good)) {
      ++places;
      const std::string field = quoted(place);
      json bad = good;
      bad[place.parent_pointer()].erase(place.back());
      refused(bad.dump(), "\"" + field + "\" is missing");
      for (const json& wrong : {json(nullptr), json(true), json(json::array()), json(json::object())}) {
        bad = good;
        bad[place] = wrong;
        refused(bad.dump(), "\"" + field + "\" is not ");
      }
      bad = good;
      if (good[place].is_string()) {
        for (const json& wrong : {json(""), json(std::string(1001, 'x')), json(3)}) {
          bad[place] = wrong;
          refused(bad.dump(), "\"" + field + "\" ");
        }
      } else {
        for (const json& wrong : {json(0), json(-1), json(-2.5), json(1e300), json("8")}) {
          bad[place] = wrong;
          refused(bad.dump(), "\"" + field + "\" ");
        }
      }
      bad = good;
      bad[place.parent_pointer()]["colour"] = 1;
      refused(bad.dump(), "colour\" is not a field that it knows");
    }
  }
  CHECK(places > 100);
}

TEST_CASE("a file that can't be read, is not JSON, or names a field twice is refused") {
  const TemporaryFolder folder;
  const std::string path = folder.file("it.json"), good = known_cluster("h100-ndr").dump();
  const auto sentence = [&](const std::string& text) {
    write_text(path, text);
    return usage_error([&] { cluster_of(path); });
  };
  CHECK(holds(usage_error([&] { cluster_of(folder.file("none.json")); }), "there is no such file"));
  CHECK(holds(usage_error([&] { cluster_of("/dev/null/x.json"); }), "there is no such file"));
  std::filesystem::create_directory(folder.file("a.json"));
  CHECK(holds(usage_error([&] { cluster_of(folder.file("a.json")); }), "it is a folder"));
  CHECK(holds(sentence(std::string(2 << 20, ' ')), "larger than 1 MiB"));
  CHECK(holds(sentence(""), "it is not JSON, as byte 1"));
  CHECK(holds(sentence(good.substr(0, good.size() / 2)), "it is not JSON, as byte"));
  CHECK(holds(sentence(good + "{}"), "it is not JSON, as byte"));
  CHECK(holds(sentence("[]"), "not an object"));
  CHECK(holds(sentence(std::string(100000, '[')), "more than 10 levels"));
  CHECK(holds(sentence("{\"name\": NaN}"), "it is not JSON"));
  CHECK(holds(sentence("{\"name\": 1e999}"), "too large"));
  CHECK(holds(sentence("{\"name\": \"a\", \"name\": \"b\"}"), "it names \"name\" twice"));
  CHECK(holds(sentence("{\"name\": \"a\\u0000\\n\", \"\\u001b[31m\": 1}"), "accelerator"));
  // Two objects may have fields of one name.
  CHECK(sentence(good) == kAccepted);
}

TEST_CASE("levels have to nest, and a share of the peak is at most 1") {
  const TemporaryFolder folder;
  const auto sentence = [&](const std::string& cluster, const std::string& place, const json& value) {
    json changed = known_cluster(cluster);
    changed[json::json_pointer(place)] = value;
    write_text(folder.file("it.json"), changed.dump());
    return usage_error([&] { cluster_of(folder.file("it.json")); });
  };
  CHECK(holds(sentence("h100-ndr", "/levels/1/accelerators_joined", 12), "not a multiple of the 8"));
  CHECK(holds(sentence("h100-ndr", "/levels/1/accelerators_joined", 8), "not a multiple of the 8"));
  CHECK(holds(sentence("h100-ndr", "/levels/1/accelerators_joined", "most"), "neither a whole number nor"));
  CHECK(holds(sentence("h100-ndr", "/levels/0/accelerators_joined", "all"), "is not a whole number"));
  CHECK(holds(sentence("h100-ndr", "/levels/0/accelerators_joined", 2.5), "is not a whole number"));
  CHECK(sentence("h100-ndr", "/levels/1/accelerators_joined", 16) == kAccepted);
  CHECK(holds(sentence("a100-selene", "/accelerator/product_efficiency/0/points/0/share_of_peak", 1.1), "above 1"));
  CHECK(holds(sentence("h100-efa", "/levels/1/all_reduce/points/3/units", 2), "not above that of the point before"));
}

TEST_CASE("product_efficiency: the middle of the curves at a size, between the least and the most of them") {
  Accelerator chip{"chip", 1e12, 1, 1, {}, "made up"};
  chip.product_efficiency = {{{{1e9, 0.2}, {1e11, 0.2}}, "one"}, {{{1e10, 0.8}}, "another"}};
  const ProductEfficiency both = product_efficiency(chip, 1e10);
  CHECK(both.value == near(0.4));
  CHECK(both.low == near(0.2));
  CHECK(both.high == near(0.8));
  CHECK(!both.elsewhere);
  // Outside is what lies outside of every curve; the nearest of all points is named.
  CHECK(!both.outside);
  CHECK(!product_efficiency(chip, 2e9).outside);
  const ProductEfficiency larger = product_efficiency(chip, 1e12);
  REQUIRE(larger.outside);
  CHECK(larger.outside->nearest == 1e11);
  CHECK(larger.outside->at == 1e12);
}

TEST_CASE("product_efficiency: what nobody measured lies in the band of what was measured elsewhere, and says so") {
  const Accelerator unknown{"unknown", 1e15, 1, 1, {}, "made up"};
  for (double product = 1e8; product < 1e14; product *= 3) {
    CAPTURE(product);
    const ProductEfficiency efficiency = product_efficiency(unknown, product);
    CHECK(efficiency.elsewhere);
    CHECK(efficiency.low < efficiency.value);
    CHECK(efficiency.value < efficiency.high);
    CHECK(efficiency.high <= 1);
    for (const char* name : {"a100-selene", "h100-efa", "rtx4090-100gbe"}) {
      const ProductEfficiency known = product_efficiency(cluster_of(name).accelerator, product);
      CHECK(!known.elsewhere);
      CHECK(known.low >= efficiency.low);
      CHECK(known.high <= efficiency.high);
    }
  }
  CHECK(cluster_of("gb300-nvl72").accelerator.product_efficiency.empty());
}

TEST_CASE("limits of a file hold to the last one") {
  const TemporaryFolder folder;
  const json good = known_cluster("a100-selene");
  const auto sentence = [&](const std::string& place, const json& value) {
    json changed = good;
    changed[json::json_pointer(place)] = value;
    write_text(folder.file("it.json"), changed.dump());
    return usage_error([&] { cluster_of(folder.file("it.json")); });
  };
  const std::string speed = "/accelerator/peak_tflop_per_s", name = "/accelerator/name";
  for (const double number : {1e-12, 1e15}) CHECK(sentence(speed, number) == kAccepted);
  for (const double number : {0.99e-12, 1.01e15})
    CHECK(holds(sentence(speed, number), "takes a number above 0, from 1e-12 to 1e+15"));
  CHECK(sentence(name, std::string(1000, 'x')) == kAccepted);
  CHECK(holds(sentence(name, std::string(1001, 'x')), "has 1001 bytes; a text has from 1 to 1000"));
  CHECK(holds(sentence(name, ""), "has 0 bytes; a text has from 1 to 1000"));
  CHECK(sentence("/levels/1/accelerators_joined", 1'000'000'000) == kAccepted);
  CHECK(holds(sentence("/levels/1/accelerators_joined", 1'000'000'008), "is not a whole number from 1 to 1000000000"));
  CHECK(sentence("/accelerator/product_efficiency/0/points/2/share_of_peak", 1) == kAccepted);
  CHECK(holds(sentence("/accelerator/product_efficiency", json::array()), "is not a list of 1 to 64 objects"));
  CHECK(holds(sentence("/levels", json::array()), "is not a list of 1 to 64 objects"));
}

TEST_CASE("the page about these files has an example that is read, and names every field") {
  const std::string page = read_text(std::string(MUONWALK_ROOT) + "/docs/cost-model.md");
  const std::size_t begin = page.find("```json\n") + 8, end = page.find("```", begin);
  REQUIRE(end != std::string::npos);
  const TemporaryFolder folder;
  write_text(folder.file("example.json"), page.substr(begin, end - begin));
  CHECK(cluster_of(folder.file("example.json")).node() == 8);
  for (const json& file : {known_cluster("h100-efa"), known_cluster("a100-selene")})
    for (const json::json_pointer& place : leaves(file))
      for (json::json_pointer rest = place; !rest.empty(); rest = rest.parent_pointer()) {
        const std::string field = rest.back();
        if (field == "points" || field.find_first_not_of("0123456789") == std::string::npos) continue;
        CAPTURE(field);
        CHECK(holds(page.substr(end), "`" + field + "`"));
      }
}
