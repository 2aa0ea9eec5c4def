#pragma once

#include <string>

namespace muonwalk {

/// Writes `text` to the file `path`, whole or not at all: it is written beside and renamed. Throws UsageError, one
/// sentence that names `path`, the system's reason and what would work.
void write_text_file(const std::string& path, const std::string& text);

}  // namespace muonwalk
