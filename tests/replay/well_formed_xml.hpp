#pragma once

#include <cctype>
#include <string>
#include <vector>

/// A strict little reader of XML: elements, quoted attributes, text, the five entities. It knows no comments, CDATA or
/// prologue, because the pictures have none.
class XmlReader {
 public:
  explicit XmlReader(const std::string& text) : text_(text) {}

  /// The first thing that is wrong, or nothing.
  std::string complaint() {
    element();
    while (good() && at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    if (good() && at_ != text_.size()) fail("something follows the root element");
    return complaint_;
  }

 private:
  bool good() const { return complaint_.empty(); }
  void fail(const std::string& what) {
    if (good()) complaint_ = what + " at byte " + std::to_string(at_) + ": " + text_.substr(at_, 40);
  }
  bool take(const std::string& word) {
    if (text_.compare(at_, word.size(), word) != 0) return false;
    at_ += word.size();
    return true;
  }
  std::string name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '-' ||
                                  text_[at_] == ':' || text_[at_] == '_')) {
      ++at_;
    }
    if (at_ == begin) fail("a name is missing");
    return text_.substr(begin, at_ - begin);
  }
  // Text up to one of `ends`, with nothing in it that must be written as an entity.
  void characters(const std::string& ends) {
    while (good() && at_ < text_.size() && ends.find(text_[at_]) == std::string::npos) {
      const unsigned char c = static_cast<unsigned char>(text_[at_]);
      if (c < 0x20 && c != '\n' && c != '\t' && c != '\r') return fail("a control character");
      if (c == '<') return fail("a bare <");
      if (c == '&') {
        bool known = false;
        for (const char* entity : {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"}) known = known || take(entity);
        if (!known) return fail("a bare &");
      } else {
        ++at_;
      }
    }
  }
  void spaces() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  void element() {
    if (!take("<")) return fail("an element is missing");
    const std::string tag = name();
    std::vector<std::string> attributes;
    spaces();
    while (good() && at_ < text_.size() && text_[at_] != '>' && text_[at_] != '/') {
      const std::string attribute = name();
      for (const std::string& before : attributes) {
        if (before == attribute) return fail("attribute " + attribute + " twice");
      }
      attributes.push_back(attribute);
      if (!take("=\"")) return fail("a value in quotes is missing");
      characters("\"");
      if (!take("\"")) return fail("a quote is missing");
      spaces();
    }
    if (take("/>")) return;
    if (!take(">")) return fail("a > is missing");
    while (good()) {
      characters("<");
      if (at_ >= text_.size()) return fail("the end of <" + tag + "> is missing");
      if (text_.compare(at_, 2, "</") == 0) break;
      if (good()) element();
    }
    if (good() && !take("</" + tag + ">")) fail("the end of <" + tag + "> is missing");
  }

  const std::string& text_;
  std::size_t at_ = 0;
  std::string complaint_;
};
