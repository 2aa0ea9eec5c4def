#pragma once

#include <cstddef>
#include <string>

namespace muonwalk::sim {

/// The most bytes of a file that holds a secret.
constexpr std::size_t kMostPrivateBytes = 4096;

/// Reads an open file that has to be this user's alone. Returns what is wrong with it, for a sentence; empty when
/// nothing is.
std::string read_private_file(int descriptor, std::string& text);

/// What is wrong with an open folder that has to be this user's alone; empty when nothing is.
std::string private_folder_complaint(int descriptor);

}  // namespace muonwalk::sim
