// A cluster: blocks that run at the same time, close together, and reach each other's shared memory.
#pragma once
#include "barrier.cuh"
#include "tma.cuh"

int cluster_rank() {
  u32 rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// All threads of all blocks of the cluster meet.
void cluster_meet() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

// Arrive at the barrier that lies at the same place in the shared memory of block `rank`. What it reports is that
// reads of shared memory are over, so nothing need become visible elsewhere first: with `.release.cluster` the compiler
// would put a fence for the whole GPU (MEMBAR.ALL.GPU) before each report.
void barrier_arrive_at(u64* barrier, int rank) {
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
      "}\n" ::"r"(shared_address(barrier)),
      "r"(rank)
      : "memory");
}

// A tile to the same place in every block of `blocks` (a bit each); its bytes arrive at each one's own `full`.
void load_tile_everywhere(const TensorMap& map, void* tile, u64* full, int x, int y, u16 blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(tile)),
      "l"(&map), "r"(x), "r"(y), "r"(shared_address(full)), "h"(blocks)
      : "memory");
}

void load_tile_everywhere(const TensorMap& map, void* tile, u64* full, int x, int y, int z, u16 blocks) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(shared_address(tile)),
      "l"(&map), "r"(x), "r"(y), "r"(z), "r"(shared_address(full)), "h"(blocks)
      : "memory");
}
