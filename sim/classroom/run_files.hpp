#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/classroom/recording_builder.hpp"
#include "sim/classroom/tracer.hpp"
#include "sim/ranks/options.hpp"

namespace muonwalk::sim {

/// What a run leaves behind besides its lines. It lives in the parent.
struct RunFiles {
  std::unique_ptr<RecordingBuilder> recording;                ///< `--record`; null without it
  std::unique_ptr<Tracer> tracer;                             ///< null where the run is not traced
  std::vector<std::pair<std::string, std::string>> pictures;  ///< the lesson's own, as SVG, by their names

  RunFiles() = default;
  /// Those that the options ask for.
  RunFiles(const LessonInfo& info, const Options& options);

  /// Writes all of them, to take their places later; `ok` says whether the run's checks held. Throws UsageError.
  void write(const Options& options, bool ok, FilesBeside& files);
};

/// Throws UsageError when a file that was asked for can't be written where it should be; makes the folders of pictures
/// and traces if there are none. To be called before any rank is started.
void require_writable(const Options& options);

/// Throws UsageError when a file of a run is asked for that does not come about, because `option` asks for something
/// in its place.
void require_no_files(const Options& options, const char* option);

}  // namespace muonwalk::sim
