#include "tools/scale/json_fields.hpp"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "src/errors.hpp"
#include "src/text/names.hpp"

namespace muonwalk::sim {
namespace {

using nlohmann::json;

constexpr int kMostDepth = 10;
constexpr std::size_t kMostText = 1000, kMostTexts = 4096;
constexpr double kLeastNumber = 1e-12, kMostNumber = 1e15, kMostCount = 1e9;

}  // namespace

std::string read_small_file(const std::string& path, int most_mebibytes,
                            const std::function<void(const char* reason)>& refuse) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (error == std::errc::permission_denied) refuse("permission denied");
  if (!std::filesystem::exists(status)) refuse("there is no such file");
  if (std::filesystem::is_directory(status)) refuse("it is a folder");
  if (!std::filesystem::is_regular_file(status)) refuse("it is not a regular file");
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error || bytes > static_cast<std::uintmax_t>(most_mebibytes) << 20)
    refuse(fmt::format("it is larger than {} MiB", most_mebibytes).c_str());
  std::ifstream stream(path, std::ios::binary);
  if (!stream) refuse("permission denied");
  std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (stream.bad()) refuse("it could not be read to its end");
  return text;
}

void JsonFile::refuse(const std::string& reason) const {
  throw UsageError(
      fmt::format("the {} {} can't be used: {}; docs/cost-model.md has its fields", kind, in_quotes(path), reason));
}

json JsonFile::read() const {
  return parsed(read_small_file(path, 1, [this](const char* reason) { refuse(reason); }));
}

json JsonFile::parsed(const std::string& text) const {
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int depth, json::parse_event_t event, json& value) {
    if (depth > kMostDepth) refuse(fmt::format("it has more than {} levels", kMostDepth));
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second)
      refuse("it names " + in_quotes(value.get<std::string>()) + " twice in one object");
    return true;
  };
  try {
    json root = json::parse(text, watch);
    if (!root.is_object()) refuse("it is JSON, but not an object");
    return root;
  } catch (const json::parse_error& error) {
    refuse(fmt::format("it is not JSON, as byte {} of it shows", error.byte));
  } catch (const json::out_of_range&) {
    refuse("it has a number that is too large");
  }
}

JsonFields::JsonFields(const JsonFile& file, std::string where, const json& object)
    : file_(&file), where_(std::move(where)), object_(&object) {}

void JsonFields::refuse(const std::string& name, const std::string& reason) const {
  file_->refuse("its " + in_quotes(where_ + name) + " " + reason);
}

std::string JsonFields::text(const std::string& name) {
  const json& value = take(name);
  if (!value.is_string()) refuse(name, "is not a text");
  const std::string& text = value.get_ref<const std::string&>();
  if (text.empty() || text.size() > kMostText)
    refuse(name, fmt::format("has {} bytes; a text has from 1 to {}", text.size(), kMostText));
  return text;
}

bool JsonFields::truth(const std::string& name) {
  const json& value = take(name);
  if (!value.is_boolean()) refuse(name, "is neither true nor false");
  return value.get<bool>();
}

double JsonFields::number(const std::string& name, double unit) {
  const json& value = take(name);
  if (!value.is_number()) refuse(name, "is not a number");
  const double number = value.get<double>();
  if (!std::isfinite(number) || number < kLeastNumber || number > kMostNumber)
    refuse(name,
           fmt::format("is {:g}, but it takes a number above 0, from {:g} to {:g}", number, kLeastNumber, kMostNumber));
  return number * unit;
}

int JsonFields::whole(const std::string& name, int least) {
  const json& value = take(name);
  const double number = value.is_number() ? value.get<double>() : -1;
  if (!value.is_number_integer() || number < least || number > kMostCount)
    refuse(name, fmt::format("is not a whole number from {} to {:.0f}", least, kMostCount));
  return static_cast<int>(number);
}

int JsonFields::whole_or(const std::string& name, int otherwise, int least) {
  return has(name) ? whole(name, least) : otherwise;
}

int JsonFields::whole_or_all(const std::string& name) {
  if (!has(name) || !object_->at(name).is_string()) return whole(name);
  if (text(name) == "all") return 0;
  refuse(name, "is neither a whole number nor \"all\"");
}

JsonFields JsonFields::object(const std::string& name) {
  const json& value = take(name);
  if (!value.is_object()) refuse(name, "is not an object");
  return {*file_, where_ + name + ".", value};
}

std::vector<JsonFields> JsonFields::objects(const std::string& name, std::size_t most) {
  std::vector<JsonFields> all;
  for (const json& value : list(name, "objects", most)) {
    const std::string element = fmt::format("{}[{}]", name, all.size());
    if (!value.is_object()) refuse(element, "is not an object");
    all.emplace_back(*file_, where_ + element + ".", value);
  }
  return all;
}

std::vector<std::string> JsonFields::texts(const std::string& name) {
  std::vector<std::string> all;
  for (const json& value : list(name, "texts", kMostTexts)) {
    if (!value.is_string()) refuse(fmt::format("{}[{}]", name, all.size()), "is not a text");
    all.push_back(value.get<std::string>());
  }
  return all;
}

std::vector<int> JsonFields::wholes(const std::string& name) {
  std::vector<int> all;
  for (const json& value : list(name, "whole numbers", kMostTexts)) {
    if (!value.is_number_integer() || value < 1 || value > kMostCount)
      refuse(name, fmt::format("has {}, which is not a whole number from 1 to {:.0f}", value.dump(), kMostCount));
    all.push_back(value.get<int>());
  }
  return all;
}

MeasuredCurve JsonFields::curve(const std::string& name, const CurveAxes& axes) {
  return has(name) ? curve_of(object(name), axes) : MeasuredCurve{};
}

std::vector<MeasuredCurve> JsonFields::curves(const std::string& name, const CurveAxes& axes) {
  std::vector<MeasuredCurve> all;
  if (has_list(name))
    for (const JsonFields& each : objects(name)) all.push_back(curve_of(each, axes));
  else if (has(name))
    all.push_back(curve(name, axes));
  return all;
}

MeasuredCurve JsonFields::curve_of(JsonFields fields, const CurveAxes& axes) {
  MeasuredCurve curve;
  for (JsonFields& point : fields.objects("points")) {
    curve.points.push_back({point.number(axes.at, axes.at_unit), point.number(axes.value, axes.value_unit)});
    point.done();
    if (curve.points.size() > 1 && curve.points.back().at <= curve.points[curve.points.size() - 2].at)
      point.refuse(axes.at, "is not above that of the point before");
  }
  curve.source = fields.text("source");
  fields.done();
  return curve;
}

void JsonFields::done() const {
  for (const auto& [name, value] : object_->items())
    if (taken_.count(name) == 0) refuse(name, "is not a field that it knows");
}

const json& JsonFields::take(const std::string& name) {
  if (!has(name)) refuse(name, "is missing");
  taken_.insert(name);
  return object_->at(name);
}

const json& JsonFields::list(const std::string& name, const char* of, std::size_t most) {
  const json& value = take(name);
  if (!value.is_array() || value.empty() || value.size() > most)
    refuse(name, fmt::format("is not a list of 1 to {} {}", most, of));
  return value;
}

}  // namespace muonwalk::sim
