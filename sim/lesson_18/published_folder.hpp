#pragma once

#include <string>
#include <vector>

#include "sim/analyser/published_figures.hpp"

namespace muonwalk::sim {

/// The names of the published files: Muon, AdamW, and the asynchronous variants of both.
extern const std::vector<std::string> kPublishedFiles;

/// Reads the four published traces from a folder. Throws UsageError, one sentence, when the folder or a file is not
/// there, or a file can't be read.
PublishedTraces read_published_folder(const std::string& folder);

}  // namespace muonwalk::sim
