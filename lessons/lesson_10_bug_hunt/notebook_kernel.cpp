#include "lessons/lesson_10_bug_hunt/notebook_kernel.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <mutex>
#include <thread>

namespace muonwalk::sim {
namespace {

std::mutex kernels_lock;
std::mutex one_worker_at_a_time;  // ranks that are threads share the kernel's lock

// Tries for 50 ms.
bool worker_gets_the_lock() {
  for (int tries = 0; tries < 50; ++tries) {
    if (kernels_lock.try_lock()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace

bool thread_worker_answers() {
  const std::lock_guard<std::mutex> turn(one_worker_at_a_time);
  kernels_lock.lock();  // the kernel is writing its output
  bool answered = false;
  std::thread worker([&answered] {
    while (!worker_gets_the_lock()) {
    }
    kernels_lock.unlock();
    answered = true;
  });
  kernels_lock.unlock();  // the kernel is done
  worker.join();
  return answered;
}

bool forked_worker_answers() {
  const std::lock_guard<std::mutex> turn(one_worker_at_a_time);
  kernels_lock.lock();
  const pid_t worker = fork();
  if (worker == 0) _exit(worker_gets_the_lock() ? 0 : 1);
  kernels_lock.unlock();  // the kernel is done, but the worker's copy of the lock will never know
  int status = 1;
  if (worker > 0) waitpid(worker, &status, 0);
  return worker > 0 && status == 0;
}

}  // namespace muonwalk::sim
