// Rung 3: a producer, and two consumers.
//
// New: warps with roles. The last warpgroup, the producer, orders tiles and does nothing else - one thread of it, to
// be exact; the others, the consumers, multiply and order nothing. They meet at two barriers for each stage: `full`
// (TMA has brought the tiles) and `empty` (every consumer warp is through with them). Nobody else waits for anybody, so
// the copies run ahead as far as the ring allows. The producer needs few registers: setmaxnreg gives the rest to the
// consumers.
//
// For sm_90a.
#include "barrier.cuh"
#include "roles.cuh"
#include "store.cuh"
#include "tensor_core.cuh"
#include "tma.cuh"
#include "wgmma.cuh"

constexpr int BK = 128, MATH = BM / 64 * 128, THREADS = MATH + 128;
constexpr int A_BYTES = BM * BK, B_BYTES = BN * BK;

extern "C" __global__ __launch_bounds__(THREADS, 1) void v3_warp_specialised(
    const __grid_constant__ TensorMap map_a,  // (M, K) e4m3, boxes of BM x BK, swizzled
    const __grid_constant__ TensorMap map_b,  // (N, K) e4m3, boxes of BN x BK, swizzled
    u16* D,                                   // (M, N) bf16
    int M, int N, int K) {
  extern __shared__ __align__(1024) u8 a_tiles[];  // (STAGES, BM, BK), and behind them
  u8* b_tiles = a_tiles + STAGES * A_BYTES;        // (STAGES, BN, BK)
  __shared__ u64 full[STAGES], empty[STAGES];
  int m0 = blockIdx.y * BM, n0 = blockIdx.x * BN, blocks = blocks_of(K, BK);

  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      barrier_init(&full[stage], 1);           // the producer arrives, and the bytes
      barrier_init(&empty[stage], MATH / 32);  // a lane of every consumer warp
    }
    barrier_init_done();
  }
  __syncthreads();

  if (warp_index() >= MATH / 32) {  // the producer
    give_registers<FEW_REGISTERS>();
    if (warp_index() == MATH / 32 && elect_one()) {
      for (int block = 0; block < blocks; ++block) {
        int stage = block % STAGES;
        barrier_wait(&empty[stage], ~(block / STAGES) & 1);  // the first lap passes: the stages are empty
        barrier_expect(&full[stage], A_BYTES + B_BYTES);
        load_tile(map_a, a_tiles + stage * A_BYTES, &full[stage], block * BK, m0);
        load_tile(map_b, b_tiles + stage * B_BYTES, &full[stage], block * BK, n0);
      }
    }
    return;
  }

  take_registers<MATH == 256 ? 232 : 248>();  // the consumers
  int group = warp_index() / 4, lane = threadIdx.x % 32;
  float d[BN / 2] = {};
  for (int block = 0; block < blocks; ++block) {
    int stage = block % STAGES;
    barrier_wait(&full[stage], block / STAGES & 1);

    u64 a = descriptor_of(a_tiles + stage * A_BYTES + group * 64 * BK);
    u64 b = descriptor_of(b_tiles + stage * B_BYTES);
    pin(d);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < BK / STEP; ++step) wgmma_k32(d, a + step * NEXT_STEP, b + step * NEXT_STEP, 1);
    wgmma_commit();
    pin(d);
    wgmma_wait<0>();
    if (lane == 0) barrier_arrive(&empty[stage]);
  }

  int row = m0 + threadIdx.x / 32 * 16 + lane / 4;
  store_columns(D, d, row, n0 + lane % 4 * 2, M, N);
}
