#pragma once

#include <string>

namespace muonwalk::sim {

/// An empty file in the system's folder for such, removed at the end.
class TemporaryFile {
 public:
  /// Throws RunError, one sentence, when it can't be made.
  TemporaryFile();
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace muonwalk::sim
