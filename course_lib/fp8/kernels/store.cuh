// The epilogue: registers -> D, or registers -> swizzled shared memory -> one order to TMA.
#pragma once
#include "swizzle.cuh"
#include "types.cuh"

// A thread's accumulators straight to D (M, N). Of every eight columns it has two in row `row` and two in row + 8;
// `column` is the first of them.
template <int COUNT>
void store_columns(u16* D, const float (&d)[COUNT], int row, int column, int M, int N) {
#pragma unroll
  for (int i = 0; i < COUNT; i += 4, column += 8) {
    if (column >= N) continue;
    u32* here = reinterpret_cast<u32*>(D + u64(row) * N + column);
    if (row < M) *here = pack_bf16(d[i], d[i + 1]);
    if (row + 8 < M) here[u64(8) * N / 2] = pack_bf16(d[i + 2], d[i + 3]);
  }
}

// Four matrices of 8 x 8 bf16 from the registers of a warp; lane l gives the address of row l % 8 of matrix l / 8.
void store_matrices(u32 address, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared::cta.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(a), "r"(b),
               "r"(c), "r"(d)
               : "memory");
}

// The same transposed: lane l gives the address of what becomes row l % 8, a column of the registers' matrix l / 8.
void store_transposed(u32 address, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared::cta.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(a),
               "r"(b), "r"(c), "r"(d)
               : "memory");
}

// What this thread has written to shared memory is seen by TMA, too. Then a barrier, then the order.
void show_to_tma() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

void store_tile(const TensorMap& map, const void* tile, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(x),
               "r"(y), "r"(shared_address(tile))
               : "memory");
}

// The same to matrix z of several.
void store_tile(const TensorMap& map, const void* tile, int x, int y, int z) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(&map),
               "r"(x), "r"(y), "r"(z), "r"(shared_address(tile))
               : "memory");
}

void store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Wait until TMA has read what this thread ordered: the shared memory may be written again.
void store_wait_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }

// Wait until it has arrived.
void store_wait() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// A barrier for `threads` threads of the block only; 0 is __syncthreads'.
template <int ID, int THREADS>
void meet() {
  asm volatile("bar.sync %0, %1;" ::"n"(ID), "n"(THREADS) : "memory");
}

// A barrier for the 128 threads of a warpgroup.
void meet_group(int group) { asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory"); }
