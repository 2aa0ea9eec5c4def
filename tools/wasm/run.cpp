// What run.js calls: one of the programs of this module, as a shell would start it.
#include <emscripten.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <cstdio>
#include <cstring>

#include "tools/wasm/program.hpp"

// JavaScript can't be returned anything by what fibers have taken turns in.
EM_JS(void, tell_exit_code, (int code), { exitCode = code; });

// There are no signals here, and Emscripten's C library lacks what sends them.
extern "C" {
int pthread_kill(pthread_t, int) { return 0; }
int timer_create(clockid_t, sigevent*, timer_t*) { return -1; }
int timer_settime(timer_t, int, const itimerspec*, itimerspec*) { return -1; }
int timer_delete(timer_t) { return -1; }
}

extern "C" EMSCRIPTEN_KEEPALIVE void run_program(int argc, char** argv) {
  for (const muonwalk::Program* program : muonwalk::Program::all())
    if (std::strcmp(program->name, argv[0]) == 0) return tell_exit_code(program->main(argc, argv));
  std::fprintf(stderr, "muonwalk.js has no %s; it has", argv[0]);
  for (const muonwalk::Program* program : muonwalk::Program::all()) std::fprintf(stderr, " %s", program->name);
  std::fprintf(stderr, "\n");
  tell_exit_code(2);
}
