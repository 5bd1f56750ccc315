// Rung 2: a ring of tiles. While the tensor core works on one, TMA fills the others.
//
// New: STAGES pairs of tiles, each with its barrier. Tile `block` lives in stage block % STAGES, and it is lap
// block / STAGES of that stage: the parity to wait for is the lap's. Two warpgroups share the tile of B, each with 64
// rows of A. Thread 0 orders the tile that comes STAGES later as soon as everybody is through with its place: it is
// still one of the consumers, so ordering and multiplying wait for each other.
//
// For sm_90a.
#include "barrier.cuh"
#include "store.cuh"
#include "tensor_core.cuh"
#include "tma.cuh"
#include "wgmma.cuh"

constexpr int BK = 128, THREADS = BM / 64 * 128;
constexpr int A_BYTES = BM * BK, B_BYTES = BN * BK;

extern "C" __global__ __launch_bounds__(THREADS, 1) void v2_tma_ring(
    const __grid_constant__ TensorMap map_a,  // (M, K) e4m3, boxes of BM x BK, swizzled
    const __grid_constant__ TensorMap map_b,  // (N, K) e4m3, boxes of BN x BK, swizzled
    u16* D,                                   // (M, N) bf16
    int M, int N, int K) {
  extern __shared__ __align__(1024) u8 a_tiles[];  // (STAGES, BM, BK), and behind them
  u8* b_tiles = a_tiles + STAGES * A_BYTES;        // (STAGES, BN, BK)
  __shared__ u64 full[STAGES];
  int m0 = blockIdx.y * BM, n0 = blockIdx.x * BN, blocks = blocks_of(K, BK);

  auto order = [&](int block) {
    int stage = block % STAGES;
    barrier_expect(&full[stage], A_BYTES + B_BYTES);
    load_tile(map_a, a_tiles + stage * A_BYTES, &full[stage], block * BK, m0);
    load_tile(map_b, b_tiles + stage * B_BYTES, &full[stage], block * BK, n0);
  };

  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; ++stage) barrier_init(&full[stage], 1);
    barrier_init_done();
    for (int block = 0; block < min(STAGES, blocks); ++block) order(block);
  }
  __syncthreads();

  int group = threadIdx.x / 128;  // which 64 rows
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
    __syncthreads();  // everybody is through with this stage
    if (threadIdx.x == 0 && block + STAGES < blocks) order(block + STAGES);
  }

  int lane = threadIdx.x % 32, row = m0 + threadIdx.x / 32 * 16 + lane / 4;
  store_columns(D, d, row, n0 + lane % 4 * 2, M, N);
}
