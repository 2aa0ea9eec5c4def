#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tools/scale/cluster.hpp"

namespace muonwalk::sim {

/// Reads a regular file of at most `most_mebibytes`. If that can't be done, it calls `refuse` with the reason ("it is a
/// folder"), which has to throw.
std::string read_small_file(const std::string& path, int most_mebibytes,
                            const std::function<void(const char* reason)>& refuse);

/// A JSON file that is being read. Whatever can't be used in it is refused in one sentence that names it.
struct JsonFile {
  const char* kind;  ///< "cluster file"
  std::string path;

  /// Throws UsageError.
  [[noreturn]] void refuse(const std::string& reason) const;
  /// What stands in it, or in a text in its place. A field that is there twice is refused, of which nlohmann/json
  /// itself would take the second.
  /// @{
  nlohmann::json read() const;
  nlohmann::json parsed(const std::string& text) const;
  /// @}
};

/// What the two numbers of a curve's points are called, and what they are multiplied with.
struct CurveAxes {
  const char* at;
  double at_unit;
  const char* value;
  double value_unit;
};

/// The fields of one object of a file: each is taken once, and what nobody took is unknown. All functions refuse what
/// is not as it should be, in one sentence that names file and field.
class JsonFields {
 public:
  /// `where` is what stands before the names of its fields: "levels[1]." or nothing. File and object have to stay.
  JsonFields(const JsonFile& file, std::string where, const nlohmann::json& object);

  bool has(const std::string& name) const { return object_->contains(name); }
  /// Whether it is there, and an object or a list.
  /// @{
  bool has_object(const std::string& name) const { return has(name) && object_->at(name).is_object(); }
  bool has_list(const std::string& name) const { return has(name) && object_->at(name).is_array(); }
  /// @}

  [[noreturn]] void refuse(const std::string& name, const std::string& reason) const;

  std::string text(const std::string& name);
  bool truth(const std::string& name);
  /// A number above 0, times `unit`.
  double number(const std::string& name, double unit);
  /// A whole number from `least` to 10⁹.
  int whole(const std::string& name, int least = 1);
  /// The same, or where the field is left out, `otherwise`.
  int whole_or(const std::string& name, int otherwise, int least = 1);
  /// A whole number, or "all", which is 0.
  int whole_or_all(const std::string& name);
  std::vector<std::string> texts(const std::string& name);
  std::vector<int> wholes(const std::string& name);
  JsonFields object(const std::string& name);
  std::vector<JsonFields> objects(const std::string& name, std::size_t most = 64);
  /// The object {"source": …, "points": [{`at`: …, `value`: …}, …]}; no curve where there is none.
  MeasuredCurve curve(const std::string& name, const CurveAxes& axes);
  /// Several of them, or one alone.
  std::vector<MeasuredCurve> curves(const std::string& name, const CurveAxes& axes);
  /// Refuses a field that was not taken.
  void done() const;

  /// As they stand in front of a name in a sentence.
  const std::string& where() const { return where_; }

 private:
  static MeasuredCurve curve_of(JsonFields fields, const CurveAxes& axes);
  const nlohmann::json& take(const std::string& name);
  const nlohmann::json& list(const std::string& name, const char* of, std::size_t most);

  const JsonFile* file_;
  std::string where_;
  const nlohmann::json* object_;
  std::set<std::string> taken_;
};

}  // namespace muonwalk::sim
