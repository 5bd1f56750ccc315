// What wgmma needs around it: descriptors of tiles in shared memory, fences, groups.
#pragma once
#include "types.cuh"

constexpr int STEP = 32;             // numbers of K that one wgmma multiplies
constexpr u64 NEXT_STEP = STEP >> 4; // what a descriptor grows by for the next: it counts in 16 bytes

// A tile of rows of 128 bytes, swizzled over 128 bytes, from a multiple of 1024: eight rows are 1024 bytes.
u64 descriptor_of(const void* tile) {
  u64 address = shared_address(tile);
  return (address >> 4 & 0x3fff) | u64(1) << 16 | u64(1024 >> 4) << 32 | u64(1) << 62;
}

void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

template <int PENDING>
void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// Before a fence and after a commit: the compiler must not move uses of the accumulators across.
template <int COUNT>
void pin(float (&d)[COUNT]) {
#pragma unroll
  for (int i = 0; i < COUNT; ++i) asm volatile("" : "+f"(d[i])::"memory");
}
