#include "sim/analyser/trace_input.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "src/errors.hpp"

namespace muonwalk::sim {
namespace {

constexpr unsigned kPiece = 1u << 20;

UsageError unreadable(const std::string& path, const std::string& reason) {
  return UsageError(
      fmt::format("{} can't be read as a trace: {}; name a file that torch.profiler or a lesson's --trace wrote",
                  path.empty() ? "''" : path, reason));
}

}  // namespace

struct TraceInput::Stream {
  gzFile file = nullptr;  // none for a text in memory
  std::string text;
};

TraceInput::TraceInput(const std::string& name, std::string text) : path_(name), stream_(std::make_unique<Stream>()) {
  stream_->text = std::move(text);
  begin_ = at_ = stream_->text.data();
  end_ = begin_ + stream_->text.size();
}

TraceInput::TraceInput(const std::string& path)
    : path_(path), stream_(std::make_unique<Stream>()), buffer_(std::make_unique<char[]>(kPiece)) {
  // Without O_NONBLOCK, opening a named pipe would wait for a writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) throw unreadable(path, std::strerror(errno));
  struct stat status = {};
  const bool known = ::fstat(descriptor, &status) == 0;
  if (!known || !S_ISREG(status.st_mode) || status.st_size == 0) {
    ::close(descriptor);
    throw unreadable(path, !known                     ? "the system does not say what it is"
                           : S_ISDIR(status.st_mode)  ? "it is a folder"
                           : !S_ISREG(status.st_mode) ? "it is no regular file"
                                                      : "it is empty");
  }
  stream_->file = gzdopen(descriptor, "rb");  // reads files that are not compressed as they are
  if (stream_->file == nullptr) {
    ::close(descriptor);
    throw unreadable(path, "there is no memory left for decompressing it");
  }
  gzbuffer(stream_->file, kPiece);
  begin_ = at_ = end_ = buffer_.get();
}

TraceInput::~TraceInput() {
  if (stream_->file != nullptr) gzclose_r(stream_->file);
}

bool TraceInput::read_more() {
  if (stream_->file == nullptr) return false;
  if (position() - token_began_ > kMostTokenBytes)
    throw unreadable(path_, fmt::format("from byte {} on, more than {} MiB follow without an end of the text or number",
                                        token_began_, kMostTokenBytes >> 20));
  before_ = position();
  const int got = gzread(stream_->file, buffer_.get(), kPiece);
  begin_ = at_ = end_ = buffer_.get();
  int code = Z_OK;
  const char* reason = gzerror(stream_->file, &code);
  if (got < 0)
    throw unreadable(path_, code == Z_ERRNO
                                ? std::strerror(errno)
                                : fmt::format("its gzip data are damaged after {} bytes ({})", before_, reason));
  if (got == 0) {
    if (code == Z_BUF_ERROR) throw unreadable(path_, fmt::format("its gzip data are cut off after {} bytes", before_));
    return false;
  }
  end_ += got;
  return true;
}

}  // namespace muonwalk::sim
