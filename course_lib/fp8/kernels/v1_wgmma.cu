// Rung 1: the tensor core. One warpgroup (128 threads) computes a tile of 64 x BN, 128 bytes of K after the other.
//
// New: TMA brings both tiles and wakes us through one barrier; wgmma multiplies them straight from shared
// memory, four steps of 32 a tile; the accumulators lie spread over the registers of all 128 threads. Nothing
// overlaps: while a tile comes, the tensor core waits. There are no scales, and no promotion: the sum over the whole
// of K stays in the tensor core's accumulators, and loses what they cut off.
//
// For sm_90a.
#include "barrier.cuh"
#include "store.cuh"
#include "tensor_core.cuh"
#include "tma.cuh"
#include "wgmma.cuh"

constexpr int BM = 64, BK = 128;
constexpr int TILE_BYTES = (BM + BN) * BK;

extern "C" __global__ __launch_bounds__(128, 1) void v1_wgmma(
    const __grid_constant__ TensorMap map_a,  // (M, K) e4m3, boxes of BM x BK, swizzled
    const __grid_constant__ TensorMap map_b,  // (N, K) e4m3, boxes of BN x BK, swizzled
    u16* D,                                   // (M, N) bf16
    int M, int N, int K) {
  extern __shared__ __align__(1024) u8 a_tile[];  // (BM, BK), and behind it
  u8* b_tile = a_tile + BM * BK;                  // (BN, BK)
  __shared__ u64 full;
  if (threadIdx.x == 0) {
    barrier_init(&full, 1);
    barrier_init_done();
  }
  __syncthreads();

  int m0 = blockIdx.y * BM, n0 = blockIdx.x * BN;
  float d[BN / 2] = {};
  for (int block = 0; block < blocks_of(K, BK); ++block) {
    if (threadIdx.x == 0) {
      barrier_expect(&full, TILE_BYTES);
      load_tile(map_a, a_tile, &full, block * BK, m0);
      load_tile(map_b, b_tile, &full, block * BK, n0);
    }
    barrier_wait(&full, block & 1);  // a phase for each block: its parity alternates

    pin(d);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < BK / STEP; ++step)
      wgmma_k32(d, descriptor_of(a_tile) + step * NEXT_STEP, descriptor_of(b_tile) + step * NEXT_STEP, 1);
    wgmma_commit();
    pin(d);
    wgmma_wait<0>();
    __syncthreads();  // all four warps are through: the next tile may overwrite this one
  }

  int lane = threadIdx.x % 32, row = m0 + threadIdx.x / 32 * 16 + lane / 4;
  store_columns(D, d, row, n0 + lane % 4 * 2, M, N);
}
