#include "tools/check/parameter_case.hpp"
