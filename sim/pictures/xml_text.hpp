#pragma once

#include <string>

namespace muonwalk {

/// Text as it may stand in XML between tags or in a quoted attribute: & < > " and ' become entities; bytes that are not
/// UTF-8 and characters that XML forbids (most control characters) become U+FFFD.
std::string xml_text(const std::string& text);

}  // namespace muonwalk
