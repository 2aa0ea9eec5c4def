#include "tools/scale/small_file.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace muonwalk::sim {

std::string read_small_file(const std::string& path, int most_mebibytes,
                            const std::function<void(const char* reason)>& refuse) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (error == std::errc::permission_denied) refuse("permission denied");
  if (!std::filesystem::exists(status)) refuse("there is no such file");
  if (std::filesystem::is_directory(status)) refuse("it is a folder");
  if (!std::filesystem::is_regular_file(status)) refuse("it is not a regular file");
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error || bytes > static_cast<std::uintmax_t>(most_mebibytes) << 20)
    refuse(fmt::format("it is larger than {} MiB", most_mebibytes).c_str());
  std::ifstream stream(path, std::ios::binary);
  if (!stream) refuse("permission denied");
  std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (stream.bad()) refuse("it could not be read to its end");
  return text;
}

}  // namespace muonwalk::sim
