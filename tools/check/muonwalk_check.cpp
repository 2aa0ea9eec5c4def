// muonwalk-check: says which recipe the steps of a dump are, or which known bug.

#include "sim/terminal/reading_program.hpp"

int main() {
  return muonwalk::sim::run_reading_program("muonwalk-check", "try one step at a time", [] { return 0; });
}
