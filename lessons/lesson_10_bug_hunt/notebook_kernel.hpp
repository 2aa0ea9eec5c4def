#pragma once

namespace muonwalk::sim {

// A stand-in for the kernel of a notebook: a process with threads of its own, which hold locks. A process that is
// forked from it has a copy of the locks but not of the threads, so a lock that was held is held forever. Calls from
// several threads wait for each other.

/// Starts a worker as a thread while a thread of the kernel holds its lock for a moment, and tells whether the worker
/// answered: true, for it waits until the lock is free.
bool thread_worker_answers();

/// Whether a worker that is forked answers: false, for the worker's copy of the lock is never freed. The worker gives
/// up after 50 ms, so that nobody has to wait forever.
bool forked_worker_answers();

}  // namespace muonwalk::sim
