#include "sim/lesson_18/published_folder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "sim/analyser/trace_reader.hpp"
#include "src/errors.hpp"

namespace muonwalk::sim {

const std::vector<std::string> kPublishedFiles = {
    "trace_muon_FULLSTEP_dp2_tp2_rank0.json", "trace_adamw_FULLSTEP_rank0.json",
    "trace_muon_FULLSTEP_dp2_tp2_async_rank0.json", "trace_adamw_FULLSTEP_async_rank0.json"};

PublishedTraces read_published_folder(const std::string& folder) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error))
    throw UsageError(
        fmt::format("--published {} names no folder; give the one that holds {}", folder, kPublishedFiles.front()));
  std::vector<TraceFile> files;
  for (const std::string& name : kPublishedFiles) {
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    if (!std::filesystem::exists(path, error))
      throw UsageError(fmt::format("--published {} has no file {}; all four published traces have to be there: {}",
                                   folder, name, fmt::join(kPublishedFiles, ", ")));
    files.push_back(read_trace(path.string()));
  }
  PublishedTraces traces;
  traces.muon = std::move(files[0]);
  traces.adamw = std::move(files[1]);
  traces.has_async = true;
  traces.muon_async = std::move(files[2]);
  traces.adamw_async = std::move(files[3]);
  return traces;
}

}  // namespace muonwalk::sim
