#include "tools/scale/json_fields.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "src/errors.hpp"
#include "src/text/names.hpp"
#include "tools/scale/small_file.hpp"

namespace muonwalk::sim {
namespace {

using nlohmann::json;

constexpr int kMostDepth = 10;
constexpr std::size_t kMostText = 1000, kMostObjects = 64;
constexpr double kLeastNumber = 1e-12, kMostNumber = 1e15, kMostCount = 1e9;

// Looks at each value as it is parsed: nlohmann/json itself would take the second of two fields with one name.
json parse(const std::string& text, const JsonFile& file) {
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > kMostDepth) file.refuse(fmt::format("it has more than {} levels", kMostDepth));
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
      file.refuse("it names " + in_quotes(parsed.get<std::string>()) + " twice in one object");
    return true;
  };
  try {
    return json::parse(text, watch);
  } catch (const json::parse_error& error) {
    file.refuse(fmt::format("it is not JSON, as byte {} of it shows", error.byte));
  } catch (const json::out_of_range&) {
    file.refuse("it has a number that is too large");
  }
}

}  // namespace

void JsonFile::refuse(const std::string& reason) const {
  throw UsageError(
      fmt::format("the {} {} can't be used: {}; docs/cost-model.md has its fields", kind, in_quotes(path), reason));
}

JsonFile read_json_file(const std::string& kind, const std::string& path) {
  const JsonFile file{kind, path, {}};
  return parse_json_file(kind, path, read_small_file(path, 1, [&file](const char* reason) { file.refuse(reason); }));
}

JsonFile parse_json_file(const std::string& kind, const std::string& path, const std::string& text) {
  JsonFile file{kind, path, {}};
  file.root = parse(text, file);
  if (!file.root.is_object()) file.refuse("it is JSON, but not an object");
  return file;
}

JsonFields::JsonFields(const JsonFile& file) : JsonFields(file, "", file.root) {}

JsonFields::JsonFields(const JsonFile& file, std::string where, const json& value)
    : file_(&file), where_(std::move(where)), object_(&value) {}

bool JsonFields::has(const std::string& name) const { return object_->contains(name); }

bool JsonFields::is_text(const std::string& name) const { return has(name) && object_->at(name).is_string(); }

void JsonFields::refuse(const std::string& name, const std::string& reason) const {
  file_->refuse("its " + in_quotes(where_ + name) + " " + reason);
}

const json& JsonFields::take(const std::string& name) {
  if (!has(name)) refuse(name, "is missing");
  taken_.insert(name);
  return object_->at(name);
}

std::string JsonFields::text(const std::string& name) {
  const json& value = take(name);
  if (!value.is_string()) refuse(name, "is not a text");
  const std::string& text = value.get_ref<const std::string&>();
  if (text.empty() || text.size() > kMostText)
    refuse(name, fmt::format("has {} bytes; a text has from 1 to {}", text.size(), kMostText));
  return text;
}

double JsonFields::number(const std::string& name) {
  const json& value = take(name);
  if (!value.is_number()) refuse(name, "is not a number");
  const double number = value.get<double>();
  if (!std::isfinite(number) || number < kLeastNumber || number > kMostNumber)
    refuse(name,
           fmt::format("is {:g}, but it takes a number above 0, from {:g} to {:g}", number, kLeastNumber, kMostNumber));
  return number;
}

int JsonFields::count(const std::string& name) {
  const double number = take(name).is_number() ? object_->at(name).get<double>() : 0;
  if (!object_->at(name).is_number_integer() || number < 1 || number > kMostCount)
    refuse(name, fmt::format("is not a whole number from 1 to {:.0f}", kMostCount));
  return static_cast<int>(number);
}

JsonFields JsonFields::object(const std::string& name) {
  const json& value = take(name);
  if (!value.is_object()) refuse(name, "is not an object");
  return {*file_, where_ + name + ".", value};
}

std::vector<JsonFields> JsonFields::objects(const std::string& name) {
  const json& value = take(name);
  if (!value.is_array() || value.empty() || value.size() > kMostObjects)
    refuse(name, fmt::format("is not a list of 1 to {} objects", kMostObjects));
  std::vector<JsonFields> all;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const std::string element = fmt::format("{}[{}]", name, i);
    if (!value[i].is_object()) refuse(element, "is not an object");
    all.push_back({*file_, where_ + element + ".", value[i]});
  }
  return all;
}

MeasuredCurve JsonFields::curve(const std::string& name, const std::string& what, const char* at, double at_factor,
                                const char* value, double value_factor) {
  JsonFields curve = object(name);
  std::vector<MeasuredCurve::Point> points;
  for (JsonFields& point : curve.objects("points")) {
    points.push_back({point.number(at) * at_factor, point.number(value) * value_factor});
    point.done();
    if (points.size() > 1 && points.back().at <= points[points.size() - 2].at)
      point.refuse(at, "is not above that of the point before");
  }
  std::string source = curve.text("source");
  curve.done();
  return MeasuredCurve(what, std::move(points), std::move(source));
}

void JsonFields::done() const {
  for (const auto& [name, value] : object_->items())
    if (taken_.count(name) == 0) refuse(name, "is not a field that it knows");
}

double in_file_unit(double value, double factor) { return value / factor; }

nlohmann::ordered_json curve_json(const MeasuredCurve& curve, const char* at, double at_factor, const char* value,
                                  double value_factor) {
  nlohmann::ordered_json points = nlohmann::ordered_json::array();
  for (const MeasuredCurve::Point& point : curve.points())
    points.push_back({{at, in_file_unit(point.at, at_factor)}, {value, in_file_unit(point.value, value_factor)}});
  return {{"source", curve.source()}, {"points", std::move(points)}};
}

}  // namespace muonwalk::sim
