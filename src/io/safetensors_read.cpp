#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "src/errors.hpp"
#include "src/io/open_file.hpp"
#include "src/io/safetensors.hpp"
#include "src/io/safetensors_format.hpp"
#include "src/io/unfinished.hpp"
#include "src/text/names.hpp"

namespace muonwalk {
namespace {

constexpr std::int64_t kLengthBytes = 8;

std::string bytes_text(std::int64_t count) { return std::to_string(count) + (count == 1 ? " byte" : " bytes"); }

// An open file that says in one sentence why it can't be used.
class InputFile {
 public:
  explicit InputFile(const std::string& path) : path_(path) {
    if (is_unfinished_name(path)) refuse("a run that was killed left it unfinished", "name the file that it was to be");
    // Without O_NONBLOCK, opening a named pipe would wait for a writer.
    file_ = OpenFile(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat status = {};
    if (!file_ || ::fstat(file_.descriptor(), &status) != 0) refuse_errno();
    if (!S_ISREG(status.st_mode))
      refuse(S_ISDIR(status.st_mode) ? "it is a folder" : "it is not a regular file", "name a .safetensors file");
    size_ = status.st_size;
  }

  std::int64_t size() const { return size_; }

  // The `count` bytes from `offset` on.
  void read(void* into, std::int64_t count, std::int64_t offset) const {
    char* to = static_cast<char*>(into);
    while (count > 0) {
      const auto piece = static_cast<std::size_t>(std::min<std::int64_t>(count, 1 << 30));
      const ssize_t got = ::pread(file_.descriptor(), to, piece, offset);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) refuse_errno();
      if (got == 0) refuse("it became shorter while it was read");
      to += got;
      offset += got;
      count -= got;
    }
  }

  [[noreturn]] void refuse(const std::string& why, const std::string& remedy = "save or download it again") const {
    throw UsageError("can't read " + in_quotes(path_) + ": " + why + "; " + remedy);
  }

 private:
  [[noreturn]] void refuse_errno() const {
    const int error = errno;
    if (error == ENOENT) refuse("there is no such file", "check the path");
    if (error == EACCES) refuse("permission denied", "make it readable for you");
    refuse(std::strerror(error), "check the path");
  }

  const std::string path_;
  OpenFile file_;
  std::int64_t size_ = 0;
};

SafetensorsHeader read_header(const InputFile& file, std::int64_t& data_bytes) {
  if (file.size() == 0) file.refuse("it is empty");
  if (file.size() < kLengthBytes)
    file.refuse("it ends after " + bytes_text(file.size()) + ", within the 8 of the header's length");
  unsigned char encoded[kLengthBytes];
  file.read(encoded, kLengthBytes, 0);
  std::uint64_t length = 0;
  for (int i = 0; i < kLengthBytes; ++i) length |= std::uint64_t{encoded[i]} << (8 * i);
  // Nothing is allocated before its size is known to be in the file.
  if (length > static_cast<std::uint64_t>(kLongestHeader))
    file.refuse(fmt::format("its header would be {} bytes long, more than the 100 MB that are allowed", length),
                "check that it is a .safetensors file");
  data_bytes = file.size() - kLengthBytes - static_cast<std::int64_t>(length);
  if (data_bytes < 0)
    file.refuse(fmt::format("it ends after {}, within its header of {} bytes", bytes_text(file.size()), length));
  std::string header(length, '\0');
  file.read(header.data(), static_cast<std::int64_t>(length), kLengthBytes);
  try {
    return parse_safetensors_header(header);
  } catch (const std::runtime_error& error) {
    file.refuse(error.what());
  }
}

// Checks an entry by itself, and says of which type it is.
void check_entry(const InputFile& file, TensorEntry& entry, std::int64_t data_bytes) {
  const std::string name = in_quotes(entry.name);
  const Dtype* dtype = find_dtype(entry.dtype);
  if (dtype == nullptr)
    file.refuse("tensor " + name + " has the type " + in_quotes(entry.dtype) + ", which is unknown",
                "save it as F32, BF16 or F16");
  const std::int64_t bytes = stored_bytes(*dtype, entry.shape);
  if (bytes < 0) file.refuse("tensor " + name + " has a negative length in its shape, or more elements than can be");
  const std::int64_t begin = entry.offsets[0];
  const std::int64_t end = entry.offsets[1];
  if (begin < 0 || end < begin)
    file.refuse(fmt::format("the offsets of tensor {}, {} and {}, are not a range", name, begin, end));
  if (end > data_bytes) {
    file.refuse(fmt::format("tensor {} ends at byte {} of the data, but the file has only {}", name, end, data_bytes));
  }
  if (end - begin != bytes)
    file.refuse(fmt::format("the offsets of tensor {} leave it {}, but its shape and type take {}", name,
                            bytes_text(end - begin), bytes));
  entry.type = dtype->type;
}

// Tensors must follow each other without overlap or hole, and fill the data to its end.
void require_gapless(const InputFile& file, const std::vector<TensorEntry>& entries, std::int64_t data_bytes) {
  std::int64_t next = 0;
  for (const TensorEntry& entry : entries) {
    const std::int64_t begin = entry.offsets[0];
    if (begin < next) file.refuse("tensor " + in_quotes(entry.name) + " overlaps the one before it");
    if (begin > next)
      file.refuse("a hole of " + bytes_text(begin - next) + " lies before tensor " + in_quotes(entry.name));
    next = entry.offsets[1];
  }
  if (next < data_bytes)
    file.refuse(bytes_text(data_bytes - next) + (data_bytes - next == 1 ? " follows" : " follow") + " its last tensor");
}

// What `read` returns; a sentence where the memory does not suffice.
template <class Read>
auto within_memory(const InputFile& file, const Read& read) {
  try {
    return read();
  } catch (const std::bad_alloc&) {
    file.refuse("it takes more memory than there is", "use a smaller file or a larger machine");
  }
}

}  // namespace

struct SafetensorsReader::File {
  explicit File(const std::string& path) : input(path) {}

  const InputFile input;
  std::vector<std::pair<std::int64_t, std::int64_t>> places;  // of each tensor: its first byte, and how many it has
};

SafetensorsReader::SafetensorsReader(const std::string& path) : file_(std::make_unique<File>(path)) {
  const InputFile& input = file_->input;
  within_memory(input, [&] {
    std::int64_t data_bytes = 0;
    SafetensorsHeader header = read_header(input, data_bytes);
    std::stable_sort(header.tensors.begin(), header.tensors.end(),
                     [](const TensorEntry& a, const TensorEntry& b) { return a.offsets < b.offsets; });
    metadata_ = std::move(header.metadata);
    for (TensorEntry& entry : header.tensors) {
      check_entry(input, entry, data_bytes);
      tensors_.push_back(entry);
      file_->places.emplace_back(input.size() - data_bytes + entry.offsets[0], entry.offsets[1] - entry.offsets[0]);
    }
    require_gapless(input, header.tensors, data_bytes);
  });
}

SafetensorsReader::~SafetensorsReader() = default;
SafetensorsReader::SafetensorsReader(SafetensorsReader&&) noexcept = default;

StoredTensor SafetensorsReader::read(std::size_t tensor) const {
  return within_memory(file_->input, [&] {
    StoredTensor whole = tensors_[tensor];
    const auto [begin, bytes] = file_->places[tensor];
    whole.bytes.resize(static_cast<std::size_t>(bytes));
    file_->input.read(whole.bytes.data(), bytes, begin);
    return whole;
  });
}

SafetensorsFile read_safetensors(const std::string& path) {
  const SafetensorsReader reader(path);
  SafetensorsFile contents{{}, reader.metadata()};
  for (std::size_t i = 0; i < reader.tensors().size(); ++i) contents.tensors.push_back(reader.read(i));
  return contents;
}

}  // namespace muonwalk
