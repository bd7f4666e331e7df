// SPDX-License-Identifier: Apache-2.0
// The project's GPU kernels. nvcc compiles them to lib/dynamiccl_kernels.fatbin, which device_module.cc loads
// at run time, so that no program of the project links CUDA. device_module.h and background_load.cc use the
// same names and parameters.
#include "tools/bench/cuda/kernel_bodies.h"

namespace dynamiccl::cuda {
namespace {

__device__ Share OwnShare() {
  return {uint64_t{blockIdx.x} * blockDim.x + threadIdx.x, uint64_t{gridDim.x} * blockDim.x};
}

__device__ uint64_t Nanoseconds() {
  uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

// Multiply-adds that a thread makes between two reads of the clock; they take some microseconds.
constexpr int kMultipliesARound = 1024;

// Reads, changes and writes some words of the buffer. All reads are under way before the first write.
__device__ unsigned long long CopyWords(uint4* buffer, Slice slice, uint64_t* at) {
  const uint64_t length = slice.end - slice.begin;
  uint4 words[kWordsARound];
  uint64_t places[kWordsARound];
#pragma unroll
  for (unsigned i = 0; i < kWordsARound; ++i) {
    places[i] = *at;
    words[i] = __ldcg(buffer + *at);
    *at += blockDim.x;
    if (*at >= slice.end) *at -= length;
  }
#pragma unroll
  for (unsigned i = 0; i < kWordsARound; ++i) {
    words[i].x += 1;
    __stcg(buffer + places[i], words[i]);
  }
  return kWordsARound * 2 * sizeof(uint4);
}

__device__ float MultiplyAdd(float value) {
#pragma unroll 16
  for (int i = 0; i < kMultipliesARound; ++i) value = fmaf(value, 0.999f, 0.5f);
  return value;
}

// Returns the nanoseconds since `begin`, or the load's time limit once the host has asked it to stop. Thread
// 0 reads the clock and the host's flag, and all threads of the block get what thread 0 read.
__device__ uint64_t ElapsedOfBlock(uint64_t begin, const DutyCycle& duty, const volatile unsigned* stop) {
  __shared__ uint64_t elapsed;
  __syncthreads();
  if (threadIdx.x == 0) elapsed = *stop != 0 ? duty.most_ns : Nanoseconds() - begin;
  __syncthreads();
  return elapsed;
}

}  // namespace

extern "C" __global__ void dynamiccl_fill_input(CheckedCall call, int rank, std::byte* to, uint64_t elements,
                                                uint64_t element_bytes) {
  FillShare(call, rank, to, elements, element_bytes, OwnShare());
}

extern "C" __global__ void dynamiccl_check_result(CheckedCall call, int rank, const std::byte* received,
                                                  uint64_t elements, uint64_t element_bytes,
                                                  CheckTally* tally) {
  const CheckTally own = CheckShare(call, rank, received, elements, element_bytes, OwnShare());
  atomicAdd(&tally->looked_at, own.looked_at);
  if (own.wrong != 0) atomicAdd(&tally->wrong, own.wrong);
}

// The background load. If `buffer` is null, the blocks compute and occupy their multiprocessors. Otherwise
// the blocks read and write the buffer. Each block's slice of the buffer must have at least the words of one
// round.
extern "C" __global__ void __launch_bounds__(1024)
    dynamiccl_background_load(DutyCycle duty, uint4* buffer, uint64_t words, const volatile unsigned* stop,
                              LoadTally* tally) {
  const uint64_t begin = Nanoseconds();
  const Slice slice = SliceOf(words, blockIdx.x, gridDim.x);
  uint64_t at = slice.begin + threadIdx.x;
  unsigned long long rounds = 0, bytes = 0;
  auto value = static_cast<float>(threadIdx.x);
  while (true) {
    const uint64_t elapsed = ElapsedOfBlock(begin, duty, stop);
    if (IsOver(duty, elapsed)) break;
    if (!IsBusy(duty, elapsed)) {
      __nanosleep(static_cast<unsigned>(IdleLeft(duty, elapsed)));
      continue;
    }
    if (buffer != nullptr)
      bytes += CopyWords(buffer, slice, &at);
    else
      value = MultiplyAdd(value);
    ++rounds;
  }
  if (value < 0) rounds = 0;  // never: keeps the arithmetic from being left out
  if (threadIdx.x == 0) {
    atomicAdd(&tally->started, 1ull);
    atomicAdd(&tally->rounds, rounds);
  }
  atomicAdd(&tally->bytes, bytes);
}

}  // namespace dynamiccl::cuda
