// The very first cell of every notebook includes this file and nothing else, so it is compiled at once. The next cell
// includes the library's headers, which takes seconds, in which Jupyter's button Interrupt would end the kernel of
// xeus-cpp. From here on a kernel takes no notice of it; once the library is loaded, it ends what the ranks do.
#pragma once

#include <dlfcn.h>

namespace nb {

/// What the kernel did at an interrupt. (The function is asked for by its name, because <csignal> declares POSIX's
/// read, and lesson 18 has a function of that name.)
using SignalHandler = void (*)(int);
const SignalHandler kernels_own_handler = reinterpret_cast<SignalHandler (*)(int, SignalHandler)>(
    dlsym(RTLD_DEFAULT, "signal"))(2, reinterpret_cast<SignalHandler>(1));  // SIGINT, SIG_IGN

}  // namespace nb
