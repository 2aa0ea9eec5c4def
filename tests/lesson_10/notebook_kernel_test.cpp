#include "sim/lesson_10/notebook_kernel.hpp"

#include <doctest/doctest.h>

using namespace muonwalk::sim;

TEST_CASE("notebook kernel: a worker that is a thread answers, one that is forked never does, in any order") {
  CHECK(thread_worker_answers());
  CHECK_FALSE(forked_worker_answers());
  CHECK(thread_worker_answers());
  CHECK_FALSE(forked_worker_answers());
}
