#include "src/io/text_file.hpp"

#include "src/io/file_beside.hpp"

namespace muonwalk {

void write_text_file(const std::string& path, const std::string& text) {
  FileBeside file(path);
  file.write(text.data(), text.size());
  file.commit();
}

}  // namespace muonwalk
