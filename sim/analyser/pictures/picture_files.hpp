#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/analyser/pictures/trace_picture.hpp"
#include "src/io/file_beside.hpp"

namespace muonwalk::sim {

/// The files that pictures of traces are asked for in.
struct PicturePaths {
  std::string html;  ///< "": none
  std::string svg;   ///< "": none
  /// Some picture is asked for.
  bool any() const { return !html.empty() || !svg.empty(); }
};

/// Pictures on their way into their files: whole or not at all.
class PictureFiles {
 public:
  /// Opens both, so that a path that can't be written is known before traces are read. Throws UsageError, one sentence,
  /// for such a path, for the same path twice, and for one that is among the traces, `inputs`.
  PictureFiles(const PicturePaths& paths, const std::vector<std::string>& inputs);

  /// Draws the picture into each file that was asked for. Throws UsageError where one can't be written.
  void write(const TracePicture& picture);

 private:
  std::unique_ptr<FileBeside> html_, svg_;  // nullptr: not asked for
};

}  // namespace muonwalk::sim
