#pragma once

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <utility>

namespace muonwalk {

/// An open file that closes itself; it may be a socket, or one end of a pipe.
class OpenFile {
 public:
  OpenFile() = default;
  /// Takes over the descriptor.
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  /// Hands it over; what was moved from has none.
  /// @{
  OpenFile(OpenFile&& other) noexcept : descriptor_(other.release()) {}
  OpenFile& operator=(OpenFile&& other) noexcept {
    OpenFile taken(std::move(other));
    std::swap(descriptor_, taken.descriptor_);
    return *this;
  }
  /// @}
  ~OpenFile() { close(); }

  /// −1 for none.
  int descriptor() const { return descriptor_; }
  /// True when there is one.
  explicit operator bool() const { return descriptor_ >= 0; }
  /// Closes it now.
  void close() {
    if (descriptor_ >= 0) ::close(release());
  }
  /// Hands the descriptor over to whoever closes it.
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;
};

/// Writes all of these bytes to an open file. False, and errno says why, where the system takes no more.
inline bool write_all(int descriptor, const void* bytes, std::size_t count) {
  for (auto* from = static_cast<const char*>(bytes); count > 0;) {
    const ssize_t written = ::write(descriptor, from, std::min(count, std::size_t{1} << 30));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    from += written;
    count -= static_cast<std::size_t>(written);
  }
  return true;
}

}  // namespace muonwalk
