#include "sim/analyser/pictures/picture_files.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "src/errors.hpp"

namespace muonwalk::sim {
namespace {

// Also where one of the two is a link, or the folder is written in another way.
bool same_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return a == b || std::filesystem::equivalent(a, b, ignored);
}

std::unique_ptr<FileBeside> opened(const std::string& path, const char* option,
                                   const std::vector<std::string>& inputs) {
  if (path.empty()) return nullptr;
  for (const std::string& input : inputs)
    if (same_file(path, input))
      throw UsageError(fmt::format("{} {} would replace a trace that is to be read; name another file for the picture",
                                   option, path));
  return std::make_unique<FileBeside>(path);
}

void write_whole(FileBeside* file, const std::string& text) {
  if (file == nullptr) return;
  file->write(text.data(), text.size());
  file->commit();
}

}  // namespace

PictureFiles::PictureFiles(const PicturePaths& paths, const std::vector<std::string>& inputs) {
  if (!paths.html.empty() && same_file(paths.html, paths.svg))
    throw UsageError(fmt::format("--html and --svg can't both be written to {}; name two files", paths.html));
  html_ = opened(paths.html, "--html", inputs);
  svg_ = opened(paths.svg, "--svg", inputs);
}

void PictureFiles::write(const TracePicture& picture) {
  if (html_ != nullptr) write_whole(html_.get(), trace_page(picture));
  if (svg_ != nullptr) write_whole(svg_.get(), trace_svg(picture));
}

}  // namespace muonwalk::sim
