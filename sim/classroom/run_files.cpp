#include "sim/classroom/run_files.hpp"

#include <fmt/format.h>

#include "src/errors.hpp"
#include "src/io/destination.hpp"
#include "src/io/file_beside.hpp"

namespace muonwalk::sim {

RunFiles::RunFiles(const LessonInfo& info, const Options& options) {
  if (!options.record_file.empty()) recording = std::make_unique<RecordingBuilder>(info, options);
  if (options.tracing()) tracer = std::make_unique<Tracer>(info, options);
}

void RunFiles::write(const Options& options, bool ok, FilesBeside& files) {
  if (recording != nullptr) {
    recording->finish(ok);
    files.push_back(text_file_beside(options.record_file, recording_json(recording->recording())));
  }
  const std::string& svg = options.svg_path;
  for (const auto& [name, picture] : pictures) {
    if (svg.empty()) break;
    const bool folder = svg.back() == '/';
    files.push_back(text_file_beside(folder ? fmt::format("{}{}.svg", svg, name) : svg, picture));
    if (!folder) break;
  }
  if (tracer != nullptr) tracer->write(ok, files);
}

void require_writable(const Options& options) {
  if (!options.record_file.empty()) FileBeside(options.record_file);
  const std::string& svg = options.svg_path;
  const bool folder = !svg.empty() && svg.back() == '/';
  if (folder) make_folder("--svg", svg);
  if (!svg.empty()) FileBeside(folder ? svg + "picture.svg" : svg);
  require_trace_writable(options);
}

void require_no_files(const Options& options, const char* option) {
  for (const auto& [file_option, path] : {std::pair("--record", &options.record_file),
                                          {"--svg", &options.svg_path},
                                          {"--trace", &options.trace_file},
                                          {"--trace-per-rank", &options.trace_folder}})
    if (!path->empty())
      throw UsageError(fmt::format(
          "{} writes a file of the lesson's run, and {} does something else in its place; leave one of them out.",
          file_option, option));
}

}  // namespace muonwalk::sim
