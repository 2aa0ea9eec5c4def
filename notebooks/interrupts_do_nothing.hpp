// What ./walk jupyter has the kernel include when it starts, before any cell: a kernel's own handler would end it at an
// interrupt, and only the library, which the first cell loads, has a better one.
#pragma once

#include <csignal>

namespace nb {
void (*const handler_of_kernel)(int) = std::signal(SIGINT, SIG_IGN);
}
