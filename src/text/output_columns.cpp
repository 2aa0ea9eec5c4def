#include "src/text/output_columns.hpp"

#include <algorithm>
#include <atomic>

#include "src/text/text.hpp"

namespace muonwalk {
namespace {

constexpr int kFewestColumns = 60;
std::atomic<int> columns_of_output{kColumns};  // ranks that are threads read it as well

}  // namespace

int output_columns() { return columns_of_output; }

void set_output_columns(int columns) { columns_of_output = std::clamp(columns, kFewestColumns, kColumns); }

}  // namespace muonwalk
