// The very first cell of every notebook includes this file and nothing else, so it is compiled at once. The next cell includes
// the library's headers, which takes seconds, in which Jupyter's button Interrupt would end the kernel of xeus-cpp. From here
// on a kernel takes no notice of it; once the library is loaded, it ends what the ranks do.
#pragma once

#include <csignal>

namespace nb {
void (*const kernels_own_handler)(int) = std::signal(SIGINT, SIG_IGN);
}
