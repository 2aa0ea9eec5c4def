#pragma once

// The stand-in for CUDA's driver, libcuda.so.1: what tests ask of it, beside the driver's own functions.
//
// A device's memory is the host's, in a range of addresses that can't be read or written except while work of a stream
// uses it: a host that looks into it crashes, as it would with a GPU, and so does a kernel that leaves what it was
// given. Streams do their work in order, and only when they are asked whether it is done, one piece each time: whoever
// doesn't wait sees old values. Every address that is handed in is checked against what was allocated. A kernel is the
// real one's source, compiled for the processor (kernels_on_cpu.cpp).
//
// Environment variables, read when a process first calls it:
//   MUONWALK_STAND_IN_DEVICES   how many devices there are; 1
//   MUONWALK_STAND_IN_DRIVER    the version that the driver says it is; that of cuda.h
//   MUONWALK_STAND_IN_MEMORY    bytes of each device; 1 GiB
//   MUONWALK_STAND_IN_FAIL      what fails: see muonwalk_stand_in_fail
//   MUONWALK_STAND_IN_REPORT    a folder in which each process that used it leaves a file PID.txt at its end: lines
//   "CALL
//                               COUNT", then "live BYTES" and "streams COUNT", which are not 0 where something leaked

#include <cuda.h>

extern "C" {
/// How often a function was called by this process: "cuMemAlloc".
long muonwalk_stand_in_calls(const char* function);
/// Bytes of device memory that are allocated now, over all devices; and streams, modules and contexts that are open.
long muonwalk_stand_in_live_bytes();
long muonwalk_stand_in_live_objects();
/// Lets calls fail, in place of what was to fail until now: "CALL:N:ERROR[:later]", more of them after commas. The N-th
/// call from now on of that function gives that error, "cuMemAlloc:3:CUDA_ERROR_OUT_OF_MEMORY"; with "later" the call
/// succeeds, the error comes from the next cuStreamQuery that reaches the work, and from then on from every call, as
/// with a GPU. "" lets nothing fail and heals what has failed.
void muonwalk_stand_in_fail(const char* what);
/// In which order the threads of a block run from one __syncthreads to the next: 0 as they are numbered, 1 backwards,
/// any other number shuffles them. Without a race it does not matter.
void muonwalk_stand_in_thread_order(unsigned order);

/// For stand-ins of libraries on top of CUDA: hands a stream a piece of work. `work` is called, with a device's memory
/// readable, whenever the stream is asked and has come to it: it returns 0 when it is done, CUDA_ERROR_NOT_READY to be
/// called again later, or another error. Then, or when the stream goes, `drop` is called, once.
CUresult muonwalk_stand_in_enqueue(CUstream stream, CUresult (*work)(void*), void (*drop)(void*), void* state);
/// Do these bytes lie in device memory that is allocated?
int muonwalk_stand_in_is_device_memory(const void* address, unsigned long bytes);
/// The device, by its number, that a stream belongs to; −1 where it is none.
int muonwalk_stand_in_device_of(CUstream stream);
}
