#pragma once

#include <string>

namespace muonwalk {

/// Where a path to be written leads: with all links followed, of files that are there and of those that are not.
struct Destination {
  std::string path;    ///< The path without links.
  std::string why;     ///< Why it can't be written; empty where nothing speaks against it so far.
  std::string remedy;  ///< What would work instead.
};

/// Follows the links of a path that is not empty. A link in a folder where everybody may put one (sticky, as /tmp) is
/// not followed when it belongs neither to us nor to the owner of the folder: somebody may wish that we overwrite
/// something of ours.
Destination destination_of(const std::string& path);

/// Makes a folder, and those above it that are missing, for the value of `option`. What it has made is removed when the
/// program ends and nothing is in it. Throws UsageError with a sentence.
void make_folder(const std::string& option, const std::string& path);

/// What would help against an error of the system while a file is written.
const char* remedy_for(int error);

/// The folder that the last name of a path lies in: "." where the path is a name alone.
std::string folder_of(const std::string& path);

}  // namespace muonwalk
