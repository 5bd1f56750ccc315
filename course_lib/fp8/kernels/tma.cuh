// TMA, the tensor memory accelerator: one thread orders a whole tile; out of bounds it reads zeros and counts them.
#pragma once
#include "types.cuh"

void prefetch_map(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// The tile whose first element is (x, y) - x the innermost coordinate - to shared memory; its bytes arrive at `full`.
void load_tile(const TensorMap& map, void* tile, u64* full, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          shared_address(tile)),
      "l"(&map), "r"(x), "r"(y), "r"(shared_address(full))
      : "memory");
}

// The same for maps with three dimensions: matrix z of several.
void load_tile(const TensorMap& map, void* tile, u64* full, int x, int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(
          shared_address(tile)),
      "l"(&map), "r"(x), "r"(y), "r"(z), "r"(shared_address(full))
      : "memory");
}
