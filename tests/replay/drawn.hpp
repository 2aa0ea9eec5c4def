#pragma once

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

/// What stands in a picture, and where.
struct Drawn {
  std::string tag, css_class, text;  // of a rectangle, the text is its title
  double x = 0, y = 0, width = 0, height = 0;
  double right() const { return x + width; }
  double bottom() const { return y + height; }
};

/// A picture's page and all its rectangles, lines and texts, in order. A text takes a good half of the width that its
/// letters may have, so that those that touch do overlap.
class DrawnPage {
 public:
  explicit DrawnPage(const std::string& svg) {
    for (std::size_t at = svg.find('<'); at != std::string::npos; at = svg.find('<', at + 1)) {
      std::istringstream name(svg.substr(at + 1, 8));
      Drawn one;
      name >> one.tag;
      const std::string head = svg.substr(at, svg.find('>', at) - at);
      const auto attribute = [&](const std::string& of) {
        const std::size_t begin = head.find(" " + of + "=\"");
        if (begin == std::string::npos) return std::string();
        const std::size_t value = begin + of.size() + 3;
        return head.substr(value, head.find('"', value) - value);
      };
      const auto number = [&](const std::string& of) { return std::strtod(attribute(of).c_str(), nullptr); };
      one.css_class = attribute("class");
      if (one.tag == "svg") {
        width = number("width");
        height = number("height");
        view_box = attribute("viewBox");
      } else if (one.tag == "rect") {
        one.x = number("x"), one.y = number("y"), one.width = number("width"), one.height = number("height");
        const std::size_t title = at + head.size() + 1;
        if (svg.compare(title, 7, "<title>") == 0)
          one.text = svg.substr(title + 7, svg.find("</title>", title) - title - 7);
        all.push_back(one);
      } else if (one.tag == "text") {
        const std::size_t begin = at + head.size() + 1;
        one.text = svg.substr(begin, svg.find("</text>", begin) - begin);
        one.width = 3.5 * static_cast<double>(letters(one.text));
        one.height = 7;
        const bool middle = one.css_class.find("mw-middle") != std::string::npos;
        one.x = number("x") - (middle ? one.width / 2 : 0);
        one.y = number("y") - one.height;
        all.push_back(one);
      } else if (one.tag == "line") {
        one.x = std::min(number("x1"), number("x2")), one.y = std::min(number("y1"), number("y2"));
        one.width = std::max(number("x1"), number("x2")) - one.x;
        one.height = std::max(number("y1"), number("y2")) - one.y;
        all.push_back(one);
      }
    }
  }

  /// Those whose class has this word.
  std::vector<Drawn> of_class(const std::string& word) const {
    std::vector<Drawn> found;
    for (const Drawn& one : all)
      if ((" " + one.css_class + " ").find(" " + word + " ") != std::string::npos) found.push_back(one);
    return found;
  }

  /// Rectangles that a pointer is told these words of, at the beginning or further on.
  std::vector<Drawn> told(const std::string& words) const {
    std::vector<Drawn> found;
    for (const Drawn& one : all)
      if (one.tag == "rect" && one.text.find(words) != std::string::npos) found.push_back(one);
    return found;
  }

  /// The first thing that can't be: something beyond the page's edge or without an extent, a text over another, or a
  /// page that is empty at its lower end. Nothing where all is well.
  std::string complaint() const {
    std::ostringstream words;
    double lowest = 0;
    if (std::to_string(width) == std::to_string(0.0) || view_box.empty()) return "no page";
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Drawn& one = all[i];
      if (one.width < 0 || one.height < 0 || (one.tag == "rect" && one.width * one.height <= 0))
        words << one.tag << " '" << one.text << "' has no extent";
      if (one.x < -0.01 || one.y < -0.01 || one.right() > width + 0.01 || one.bottom() > height + 0.01)
        words << one.tag << " '" << one.text << "' is beyond the page's edge: " << one.x << " to " << one.right()
              << ", " << one.y << " to " << one.bottom() << " on " << width << " x " << height;
      if (i > 0) lowest = std::max(lowest, one.bottom());  // the first is the paper
      for (std::size_t k = 0; one.tag == "text" && k < i; ++k)
        if (all[k].tag == "text" && all[k].x < one.right() && one.x < all[k].right() && all[k].y < one.bottom() &&
            one.y < all[k].bottom())
          words << "'" << one.text << "' stands over '" << all[k].text << "'";
      if (!words.str().empty()) return words.str();
    }
    if (lowest < height - 40) words << "nothing stands below " << lowest << " on a page of " << height;
    return words.str();
  }

  double width = 0, height = 0;
  std::string view_box;
  std::vector<Drawn> all;

 private:
  static int letters(const std::string& text) {
    int count = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
      if (text[at] == '&') at = text.find(';', at);
      count += (static_cast<unsigned char>(text[at]) & 0xC0) != 0x80;
    }
    return count;
  }
};
