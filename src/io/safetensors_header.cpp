#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "src/io/safetensors_format.hpp"
#include "src/text/names.hpp"

namespace muonwalk {
namespace {

using nlohmann::json;

[[noreturn]] void refuse(const std::string& why) { throw std::runtime_error("its header " + why); }

[[noreturn]] void misplaced(const std::string& key, const std::string& in_tensor) {
  refuse("has a value that does not belong under " + in_quotes(key) + in_tensor);
}

// Takes `{"name": {"dtype": …, "shape": […], "data_offsets": […]}, "__metadata__": {…: "…"}}` piece by piece from the
// parser, which keeps nothing of it. Depth 1 is that of names, 2 of what they have, and 3 of the numbers.
class HeaderReader {
 public:
  bool operator()(int depth, json::parse_event_t event, json& value) {
    using Event = json::parse_event_t;
    if (event == Event::key && depth <= 2) begin(depth, value.get<std::string>());
    if (event == Event::key || depth == 0) return true;
    const bool opens = event == Event::object_start || event == Event::array_start;
    if (depth == 1 && event == Event::object_start && name_ != kMetadataKey) header.tensors.emplace_back().name = name_;
    if (depth == 1 && event == Event::object_end && name_ != kMetadataKey) require_complete();
    if (depth == 1 && event != Event::object_start && event != Event::object_end) misplaced(name_, "");
    if (depth == 1) return opens;
    if (name_ == kMetadataKey) {
      if (!value.is_string() || opens) throw std::runtime_error("its __metadata__ holds something other than strings");
      header.metadata.emplace_back(field_, value.get<std::string>());
      return false;
    }
    TensorEntry& tensor = header.tensors.back();
    if (depth == 2 && field_ == "dtype") {
      if (opens || !value.is_string()) misplaced(field_, in_tensor());
      tensor.dtype = value.get<std::string>();
    }
    // What a later version of the format may add to a tensor is passed over.
    if (field_ != "shape" && field_ != "data_offsets") return false;
    if (depth == 2 && event != Event::array_start && event != Event::array_end) misplaced(field_, in_tensor());
    if (depth > 2) (field_ == "shape" ? tensor.shape : tensor.offsets).push_back(integer(opens, value));
    return depth == 2 && opens;
  }

  SafetensorsHeader header;

 private:
  std::string in_tensor() const {
    return name_ == kMetadataKey ? "" : " in tensor " + in_quotes(header.tensors.back().name);
  }
  void begin(int depth, const std::string& key) {
    if (!(depth == 1 ? names_ : fields_).insert(key).second)
      refuse("names " + in_quotes(key) + " twice" + (depth == 1 ? "" : in_tensor()));
    (depth == 1 ? name_ : field_) = key;
    if (depth == 1) fields_.clear();
  }
  void require_complete() const {
    const TensorEntry& tensor = header.tensors.back();
    if (!(fields_.count("dtype") && fields_.count("shape") && fields_.count("data_offsets")))
      refuse("gives tensor " + in_quotes(tensor.name) + " no dtype, shape or data_offsets");
    if (tensor.offsets.size() != 2)
      refuse("gives tensor " + in_quotes(tensor.name) + " " + std::to_string(tensor.offsets.size()) +
             " data_offsets instead of 2");
  }
  std::int64_t integer(bool opens, const json& value) const {
    const std::string where = " in the " + field_ + " of tensor " + in_quotes(header.tensors.back().name);
    if (opens || !value.is_number_integer()) refuse("has something other than an integer" + where);
    if (value.is_number_unsigned() && value.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max())
      refuse("has the number " + value.dump() + where + ", which is too large for a size or an offset");
    return value.get<std::int64_t>();
  }

  std::string name_, field_;  // the last keys: a tensor's name, and dtype, shape or data_offsets
  std::set<std::string> names_, fields_;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(const std::string& text) {
  // The parser would take a byte of zero for the end, whatever follows.
  if (text.empty() || text[0] != '{') throw std::runtime_error("its header does not begin with '{'");
  if (text.find('\0') != std::string::npos) throw std::runtime_error("its header is not JSON, it has a byte of zero");
  HeaderReader reader;
  try {
    const json emptied = json::parse(text, std::ref(reader));
  } catch (const json::parse_error& error) {
    throw std::runtime_error("its header is not JSON, as byte " + std::to_string(error.byte) + " of it shows");
  } catch (const json::out_of_range&) {
    throw std::runtime_error("its header has a number that is too large for a double");
  }
  return std::move(reader.header);
}

}  // namespace muonwalk
