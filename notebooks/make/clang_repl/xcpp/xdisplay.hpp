// What stands in for a kernel's display where notebooks are executed by clang-repl (notebooks/make/run_notebook.py puts
// this folder on the include path): what a cell shows becomes a line of JSON behind a mark, by which the runner knows
// it.
#pragma once

#include <iostream>
#include <map>
#include <string>

namespace nl {

/// As much of nlohmann::json as a bundle of texts by their MIME type needs.
class json {
 public:
  static json object() { return {}; }
  std::string& operator[](const std::string& key) { return texts_[key]; }
  std::string dump() const {
    std::string text;
    for (const auto& each : texts_) text += (text.empty() ? "{" : ",") + quoted(each.first) + ":" + quoted(each.second);
    return text + (text.empty() ? "{}" : "}");
  }

 private:
  static std::string quoted(const std::string& text) {
    std::string result = "\"";
    for (const char c : text) {
      if (c == '\n') {
        result += "\\n";
      } else if (c == '\t') {
        result += "\\t";
      } else {
        if (c == '"' || c == '\\') result += '\\';
        result += c;
      }
    }
    return result + "\"";
  }
  std::map<std::string, std::string> texts_;
};

}  // namespace nl

namespace xcpp {

/// Shows what a `mime_bundle_repr` makes of a value.
template <class T>
void display(const T& shown) {
  std::cout << "@@ display " << mime_bundle_repr(shown).dump() << std::endl;
}

}  // namespace xcpp
