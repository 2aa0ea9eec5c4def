#include "lessons/lesson_20_pretrain/checkpoint_folder.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "sim/terminal/write_or_fail.hpp"
#include "src/errors.hpp"
#include "src/io/destination.hpp"
#include "src/io/safetensors.hpp"
#include "src/text/names.hpp"
#include "src/train/checkpoint_file.hpp"

namespace muonwalk::sim {

void make_checkpoint_folder(const std::string& folder, int steps) {
  make_folder("--save", folder);
  require_writable(checkpoint_path(folder, steps));
}

void write_to_folder(const std::string& folder, Checkpoint checkpoint) {
  const std::string path = checkpoint_path(folder, checkpoint.steps);
  write_or_fail([&] { write_checkpoint(path, std::move(checkpoint)); });
}

std::string resumed_file(const std::string& path, const std::string& word, bool both) {
  namespace fs = std::filesystem;
  if (path.empty()) return "";
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status))
    throw UsageError(fmt::format(
        "--resume {} can't be read: {}; name a checkpoint, or a folder that --save has written to.", in_quotes(path),
        status.type() == fs::file_type::not_found ? "there is no such file or folder" : error.message()));
  if (!fs::is_directory(status)) {
    if (both)
      throw UsageError(
          fmt::format("--resume {} is one checkpoint; say which optimizer is to go on from it: --optimizer muon or "
                      "--optimizer adamw.",
                      in_quotes(path)));
    return path;
  }
  const std::string folder = path + "/" + word;
  const std::optional<std::string> latest = latest_checkpoint(fs::is_directory(folder, error) ? folder : path);
  if (!latest)
    throw UsageError(fmt::format("--resume {} has no checkpoint in it; --save FOLDER writes some.", in_quotes(path)));
  return *latest;
}

}  // namespace muonwalk::sim
