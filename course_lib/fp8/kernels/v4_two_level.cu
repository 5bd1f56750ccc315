// Rung 4: two levels of sums, and the scales.
//
// New: the tensor core's sum ends with every block of 128. Its accumulators are multiplied by the two scales and added
// to a second set of registers by the ordinary float32 units ("promotion"): the scales change there anyway, and what the
// tensor core cuts off stays as small as it is after four steps, whatever K is. The two warpgroups take turns without
// being told to: while one promotes, the tensor core belongs to the other.
//
// For sm_90a.
#include "barrier.cuh"
#include "roles.cuh"
#include "store.cuh"
#include "tensor_core.cuh"
#include "tma.cuh"
#include "wgmma.cuh"

constexpr int BK = SCALED, MATH = BM / 64 * 128, THREADS = MATH + 128;
constexpr int A_BYTES = BM * BK, B_BYTES = BN * BK, S_BYTES = BM * 4;
static_assert(SCALED % BN == 0, "a tile must lie in one block of B's scales");

extern "C" __global__ __launch_bounds__(THREADS, 1) void v4_two_level(
    const __grid_constant__ TensorMap map_a,         // (M, K) e4m3, boxes of BM x BK, swizzled
    const __grid_constant__ TensorMap map_b,         // (N, K) e4m3, boxes of BN x BK, swizzled
    const __grid_constant__ TensorMap map_a_scales,  // (blocks of K, M padded to 4) float32, boxes of 1 x BM
    const float* b_scales,                           // (blocks of N, blocks of K)
    u16* D,                                          // (M, N) bf16
    int M, int N, int K) {
  extern __shared__ __align__(1024) u8 a_tiles[];                       // (STAGES, BM, BK), and behind them
  u8* b_tiles = a_tiles + STAGES * A_BYTES;                             // (STAGES, BN, BK)
  float* s_tiles = reinterpret_cast<float*>(b_tiles + STAGES * B_BYTES);  // (STAGES, BM): the scales of A
  __shared__ u64 full[STAGES], empty[STAGES];
  int m0 = blockIdx.y * BM, n0 = blockIdx.x * BN, blocks = blocks_of(K, BK);

  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      barrier_init(&full[stage], 1);
      barrier_init(&empty[stage], MATH / 32);
    }
    barrier_init_done();
  }
  __syncthreads();

  if (warp_index() >= MATH / 32) {
    give_registers<FEW_REGISTERS>();
    if (warp_index() == MATH / 32 && elect_one()) {
      for (int block = 0; block < blocks; ++block) {
        int stage = block % STAGES;
        barrier_wait(&empty[stage], ~(block / STAGES) & 1);
        barrier_expect(&full[stage], A_BYTES + B_BYTES + S_BYTES);
        load_tile(map_a, a_tiles + stage * A_BYTES, &full[stage], block * BK, m0);
        load_tile(map_b, b_tiles + stage * B_BYTES, &full[stage], block * BK, n0);
        load_tile(map_a_scales, s_tiles + stage * BM, &full[stage], m0, block);
      }
    }
    return;
  }

  take_registers<MATH == 256 ? 232 : 248>();
  int group = warp_index() / 4, lane = threadIdx.x % 32;
  int row = threadIdx.x / 32 * 16 + lane / 4;                // in the tile; the thread has this row and row + 8
  const float* b_scale = b_scales + n0 / SCALED * blocks;    // the tile's, one for each block of K
  float total[BN / 2] = {}, d[BN / 2];
  for (int block = 0; block < blocks; ++block) {
    int stage = block % STAGES;
    float of_b = b_scale[block];
    barrier_wait(&full[stage], block / STAGES & 1);
    float upper = s_tiles[stage * BM + row] * of_b, lower = s_tiles[stage * BM + row + 8] * of_b;

    u64 a = descriptor_of(a_tiles + stage * A_BYTES + group * 64 * BK);
    u64 b = descriptor_of(b_tiles + stage * B_BYTES);
    pin(d);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < BK / STEP; ++step)
      wgmma_k32(d, a + step * NEXT_STEP, b + step * NEXT_STEP, step > 0);  // the first step starts the sum anew
    wgmma_commit();
    pin(d);
    wgmma_wait<0>();
    if (lane == 0) barrier_arrive(&empty[stage]);  // the scales are in registers: the stage is free

#pragma unroll
    for (int j = 0; j < BN / 8; ++j) {
      total[4 * j] += upper * d[4 * j];
      total[4 * j + 1] += upper * d[4 * j + 1];
      total[4 * j + 2] += lower * d[4 * j + 2];
      total[4 * j + 3] += lower * d[4 * j + 3];
    }
  }

  store_columns(D, total, m0 + row, n0 + lane % 4 * 2, M, N);
}
