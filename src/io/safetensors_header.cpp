#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "src/io/safetensors_format.hpp"
#include "src/text/names.hpp"

namespace muonwalk {
namespace {

using nlohmann::json;

// Follows the parser through `{"name": {"dtype": …, "shape": […], "data_offsets": […]}, "__metadata__": {…: "…"}}`.
class HeaderHandler : public nlohmann::json_sax<json> {
 public:
  bool null() override { return scalar(); }
  bool boolean(bool) override { return scalar(); }
  bool number_float(number_float_t, const string_t&) override { return scalar(); }
  bool binary(binary_t&) override { return scalar(); }

  bool number_integer(number_integer_t value) override { return integer(value); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max())) {
      return skipping() ? true
                        : refuse("its header has the number " + std::to_string(value) + in_entry() +
                                 ", which is too large for a size or an offset");
    }
    return integer(static_cast<std::int64_t>(value));
  }

  bool string(string_t& value) override {
    if (skipping()) return true;
    if (place_ == Place::metadata) {
      header.metadata.emplace_back(field_, value);
      return true;
    }
    if (place_ == Place::entry && field_ == "dtype") {
      header.tensors.back().dtype = value;
      return true;
    }
    return misplaced();
  }

  bool start_object(std::size_t) override {
    if (skipping()) return skip_deeper();
    if (place_ == Place::outside) {
      place_ = Place::root;
    } else if (place_ == Place::root && field_ == kMetadataKey) {
      place_ = Place::metadata;
    } else if (place_ == Place::root) {
      header.tensors.push_back({field_, {}, {}, {}});
      place_ = Place::entry;
    } else {
      return misplaced();
    }
    if (place_ != Place::root) inner_keys_.clear();
    return true;
  }

  bool key(string_t& value) override {
    if (skip_depth_ > 0) return true;
    std::set<std::string>& keys = place_ == Place::root ? root_keys_ : inner_keys_;
    if (!keys.insert(value).second) return refuse("its header names " + in_quotes(value) + " twice" + in_entry());
    field_ = value;
    // What a later version of the format may add to an entry is passed over.
    skip_value_ = place_ == Place::entry && value != "dtype" && value != "shape" && value != "data_offsets";
    return true;
  }

  bool end_object() override {
    if (skip_depth_ > 0) return skip_shallower();
    if (place_ == Place::entry &&
        !(inner_keys_.count("dtype") && inner_keys_.count("shape") && inner_keys_.count("data_offsets"))) {
      return refuse("its header gives tensor " + in_quotes(header.tensors.back().name) +
                    " no dtype, shape or data_offsets");
    }
    if (place_ == Place::entry && header.tensors.back().offsets.size() != 2) {
      return refuse("its header gives tensor " + in_quotes(header.tensors.back().name) + " " +
                    std::to_string(header.tensors.back().offsets.size()) + " data_offsets instead of 2");
    }
    place_ = place_ == Place::root ? Place::outside : Place::root;
    return true;
  }

  bool start_array(std::size_t) override {
    if (skipping()) return skip_deeper();
    if (place_ != Place::entry || field_ == "dtype") return misplaced();
    place_ = Place::array;
    return true;
  }

  bool end_array() override {
    if (skip_depth_ > 0) return skip_shallower();
    place_ = Place::entry;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const json::exception&) override {
    return refuse("its header is not JSON, as byte " + std::to_string(position) + " of it shows");
  }

  SafetensorsHeader header;
  std::string reason;  // why the header was refused

 private:
  enum class Place { outside, root, metadata, entry, array };

  bool refuse(std::string why) {
    reason = std::move(why);
    return false;
  }
  bool misplaced() {
    if (place_ == Place::outside) return refuse("its header is JSON, but not an object");
    if (place_ == Place::metadata) return refuse("its __metadata__ holds something other than strings");
    if (place_ == Place::array) return refuse("its header has something other than an integer" + in_entry());
    return refuse("its header has a value that does not belong under " + in_quotes(field_) +
                  (place_ == Place::entry ? in_entry() : ""));
  }
  std::string in_entry() const {
    if (place_ != Place::entry && place_ != Place::array) return "";
    return (place_ == Place::array ? " in the " + field_ + " of tensor " : " in tensor ") +
           in_quotes(header.tensors.back().name);
  }

  bool scalar() { return skipping() ? true : misplaced(); }
  bool integer(std::int64_t value) {
    if (skipping()) return true;
    if (place_ != Place::array) return misplaced();
    TensorEntry& entry = header.tensors.back();
    (field_ == "shape" ? entry.shape : entry.offsets).push_back(value);
    return true;
  }

  // True for a value that is passed over, together with all that lies in it.
  bool skipping() {
    if (skip_depth_ > 0) return true;
    const bool skip = skip_value_;
    if (skip) skip_value_ = false;
    return skip;
  }
  bool skip_deeper() {
    ++skip_depth_;
    return true;
  }
  bool skip_shallower() {
    --skip_depth_;
    return true;
  }

  Place place_ = Place::outside;
  std::string field_;  // the last key: a tensor's name, or dtype, shape, data_offsets
  std::set<std::string> root_keys_;
  std::set<std::string> inner_keys_;
  bool skip_value_ = false;
  std::size_t skip_depth_ = 0;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(const std::string& text) {
  // The parser would take a byte of zero for the end, whatever follows.
  if (text.empty() || text[0] != '{') throw std::runtime_error("its header does not begin with '{'");
  if (text.find('\0') != std::string::npos) throw std::runtime_error("its header is not JSON, it has a byte of zero");
  HeaderHandler handler;
  if (!json::sax_parse(text, &handler)) throw std::runtime_error(handler.reason);
  return std::move(handler.header);
}

}  // namespace muonwalk
