#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tools/scale/measured_curve.hpp"

namespace muonwalk::sim {

/// A file of the cost model that was read.
struct JsonFile {
  std::string kind;     ///< "cluster file".
  std::string path;     ///< The path as it was given.
  nlohmann::json root;  ///< An object.

  /// Throws UsageError: `the cluster file "my.json" can't be used: …; docs/cost-model.md has its fields`.
  [[noreturn]] void refuse(const std::string& reason) const;
};

/// Reads a JSON file whose outermost value is an object. Throws UsageError, one sentence that names the file, where it
/// is missing, not a regular file, larger than 1 MiB, not JSON, or deeper than ten levels, and where an object names a
/// field twice.
JsonFile read_json_file(const std::string& kind, const std::string& path);
/// The same of a text that is at hand already; `path` is what sentences call it.
JsonFile parse_json_file(const std::string& kind, const std::string& path, const std::string& text);

/// The fields of one object of such a file: each is taken once, and what nobody took is unknown. Every function throws
/// UsageError, one sentence that names file and field.
class JsonFields {
 public:
  /// The fields of the outermost object.
  explicit JsonFields(const JsonFile& file);

  bool has(const std::string& name) const;
  /// Whether that is a text.
  bool is_text(const std::string& name) const;
  /// A text of 1 to 1,000 bytes.
  std::string text(const std::string& name);
  /// A number from 10⁻¹² to 10¹⁵.
  double number(const std::string& name);
  /// A whole number from 1 to 1,000,000,000.
  int count(const std::string& name);
  JsonFields object(const std::string& name);
  /// A list of 1 to 64 objects.
  std::vector<JsonFields> objects(const std::string& name);
  /// The object {"source": …, "points": [{`at`: …, `value`: …}, …]}: a curve of these, each times its factor.
  MeasuredCurve curve(const std::string& name, const std::string& what, const char* at, double at_factor,
                      const char* value, double value_factor);
  /// Refuses a field that was not taken.
  void done() const;
  /// Refuses the field for a reason: "it has to be one of …".
  [[noreturn]] void refuse(const std::string& name, const std::string& reason) const;

 private:
  JsonFields(const JsonFile& file, std::string where, const nlohmann::json& value);
  const nlohmann::json& take(const std::string& name);

  const JsonFile* file_;
  std::string where_;  // "levels[1]." or empty
  const nlohmann::json* object_;
  std::set<std::string> taken_;
};

/// The number that a file has for `value`: read and multiplied by `factor`, it is the same again, bit for bit, where
/// `value` was made in that way.
double in_file_unit(double value, double factor);

/// A curve as JsonFields::curve reads it.
nlohmann::ordered_json curve_json(const MeasuredCurve& curve, const char* at, double at_factor, const char* value,
                                  double value_factor);

}  // namespace muonwalk::sim
