#include "sim/trace/temporary_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "src/errors.hpp"

namespace muonwalk::sim {

TemporaryFile::TemporaryFile() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  path_ = (error ? std::filesystem::path("/tmp") : folder) / "muonwalk-trace-XXXXXX";
  const int file = mkstemp(path_.data());
  if (file < 0)
    throw RunError(fmt::format("no temporary file could be made as {}: {}; name another folder in TMPDIR", path_,
                               std::strerror(errno)));
  close(file);
}

TemporaryFile::~TemporaryFile() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace muonwalk::sim
