#pragma once

#include <string>
#include <vector>

#include "tests/io/temporary_folder.hpp"
#include "tools/trace/trace_page.hpp"
#include "tools/trace/reader.hpp"

namespace muonwalk::testing {

/// Reads traces, given as JSON, as the files of one run.
inline std::vector<sim::TraceFile> read_jsons(const std::vector<std::string>& jsons) {
  TemporaryFolder folder;
  std::vector<std::string> paths;
  for (const std::string& json : jsons) {
    paths.push_back(folder.file("trace" + std::to_string(paths.size()) + ".json"));
    write_text(paths.back(), json);
  }
  return sim::read_traces(paths);
}

/// A picture of one run.
inline sim::TracePicture picture_of(const std::vector<std::string>& jsons) {
  const std::vector<sim::TraceFile> files = read_jsons(jsons);
  return {{sim::picture_run(files, sim::summarize(files))}, {}};
}

inline int times(const std::string& text, const std::string& word) {
  int count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

}  // namespace muonwalk::testing
