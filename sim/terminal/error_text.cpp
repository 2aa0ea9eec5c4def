#include "sim/terminal/error_text.hpp"

#include <fmt/format.h>

#include <cstring>
#include <new>
#include <stdexcept>
#include <system_error>

#include "src/text/names.hpp"

namespace muonwalk::sim {

const char* const kUnknownError =
    "something was thrown that is not a std::exception, so nothing more is known of it; run it again, and report it if "
    "it comes again";

std::string error_text(const std::exception& error, const char* remedy) {
  const bool how_much = std::strcmp(error.what(), std::bad_alloc().what()) != 0;  // ours say it (memory_meter.cpp)
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    return fmt::format("there is not enough memory for what was asked{}; {}",
                       how_much ? fmt::format(", {} at once", error.what()) : "", remedy);
  if (dynamic_cast<const std::length_error*>(&error) != nullptr)
    return fmt::format("what was asked for is larger than memory can be ({}); {}", error.what(), remedy);
  if (dynamic_cast<const std::system_error*>(&error) != nullptr)
    return fmt::format(
        "the system refused something that the run needs ({}); run it again, and look at what is used up "
        "(memory, disk, ulimit -a) if it comes again",
        visible_name(error.what(), 300));
  return error.what();
}

}  // namespace muonwalk::sim
