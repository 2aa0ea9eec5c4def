#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

namespace muonwalk::sim {

/// The most bytes of a file that holds a secret.
constexpr std::size_t kMostPrivateBytes = 4096;

/// Reads an open file that has to be this user's alone. Returns what is wrong with it, for a sentence; empty: nothing.
std::string read_private_file(int descriptor, std::string& text);

/// What is wrong with an open folder that has to be this user's alone; empty when nothing is.
std::string private_folder_complaint(int descriptor);

/// An open file that closes itself: a socket, or one end of a pipe.
class OpenFile {
 public:
  OpenFile() = default;
  /// Takes over the descriptor.
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  /// Hands it over; what was moved from has none.
  /// @{
  OpenFile(OpenFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  OpenFile& operator=(OpenFile&& other) noexcept;
  /// @}
  ~OpenFile() { close(); }

  /// −1 for none.
  int descriptor() const { return descriptor_; }
  /// True when there is one.
  explicit operator bool() const { return descriptor_ >= 0; }
  /// Closes it now.
  void close();
  /// Hands the descriptor over to whoever closes it.
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;
};

/// Lets the kernel end this connection when the other end's kernel has not answered for `timeout`, whether something is
/// on its way or not. A process at the other end that computes, or is stopped, makes no difference: its kernel answers.
void end_when_host_is_silent(const OpenFile& socket, std::chrono::milliseconds timeout);

/// False when the kernel at the other end has not answered lately, though ours has sent it something, or asks
/// (end_when_host_is_silent): its host is gone, or cannot be reached. True where that can't be told.
bool host_answers(const OpenFile& socket);

}  // namespace muonwalk::sim
