// Rung 5: blocks that stay, and pairs of them that share what they fetch.
//
// New: as many blocks as there are multiprocessors, each computing one tile after the other. The ring of stages never
// empties between two tiles, so TMA fetches the next tile's operands while this one is stored, and the
// order of the tiles is ours (scheduler.cuh): neighbours in time are neighbours in D. And blocks come in clusters of
// CLUSTER that compute tiles side by side: each fetches its part of the common tile of A for all of them (multicast),
// so L2 is read for A once where it was read CLUSTER times: a quarter less in all, for pairs of 128 x 128.
//
// A block writes into its neighbour's shared memory, so it must know that the stage is empty *there* as well: every
// consumer warp reports to all blocks of the cluster. And no block may end while another can still report to it.
//
// For sm_90a.
#include "cluster.cuh"
#include "ring.cuh"
#include "roles.cuh"
#include "scheduler.cuh"
#include "store.cuh"
#include "tensor_core.cuh"
#include "wgmma.cuh"

constexpr int BK = SCALED, MATH = BM / 64 * 128, THREADS = MATH + 128, PART = BM / CLUSTER;
constexpr int A_BYTES = BM * BK, B_BYTES = BN * BK, S_BYTES = BM * 4;
static_assert(SCALED % BN == 0, "a tile must lie in one block of B's scales");

extern "C" __global__ __launch_bounds__(THREADS, 1) void v5_persistent(
    const __grid_constant__ TensorMap map_a,         // (M, K) e4m3, boxes of PART x BK, swizzled
    const __grid_constant__ TensorMap map_b,         // (N, K) e4m3, boxes of BN x BK, swizzled
    const __grid_constant__ TensorMap map_a_scales,  // (blocks of K, M padded to 4) float32, boxes of 1 x BM
    const float* b_scales,                           // (blocks of N, blocks of K)
    u16* D,                                          // (M, N) bf16
    int M, int N, int K) {
  extern __shared__ __align__(1024) u8 a_tiles[];                         // (STAGES, BM, BK), and behind them
  u8* b_tiles = a_tiles + STAGES * A_BYTES;                               // (STAGES, BN, BK)
  float* s_tiles = reinterpret_cast<float*>(b_tiles + STAGES * B_BYTES);  // (STAGES, BM): the scales of A
  __shared__ u64 full[STAGES], empty[STAGES];
  int blocks = blocks_of(K, BK), rank = cluster_rank();
  Schedule schedule{blocks_of(M, BM), blocks_of(N, BN), int(gridDim.x) / CLUSTER, CLUSTER, BAND};

  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      barrier_init(&full[stage], 1);
      barrier_init(&empty[stage], CLUSTER * MATH / 32);
    }
    barrier_init_done();
  }
  cluster_meet();  // nobody reports to a barrier that is not there yet

  int m_block, n_block;
  Turn turn;
  if (warp_index() >= MATH / 32) {
    give_registers<FEW_REGISTERS>();
    if (warp_index() == MATH / 32 && elect_one()) {
      for (int tile = 0; schedule.tile(tile, blockIdx.x / CLUSTER, rank, m_block, n_block); ++tile)
        for (int block = 0; block < blocks; ++block, turn.next()) {
          u64* arrived = &full[turn.stage];
          barrier_wait(&empty[turn.stage], turn.lap ^ 1);  // empty in every block of the cluster
          barrier_expect(arrived, A_BYTES + B_BYTES + S_BYTES);
          u8* part = a_tiles + turn.stage * A_BYTES + rank * PART * BK;
          if (CLUSTER == 1)
            load_tile(map_a, part, arrived, block * BK, m_block * BM);
          else
            load_tile_everywhere(map_a, part, arrived, block * BK, m_block * BM + rank * PART, (1 << CLUSTER) - 1);
          load_tile(map_b, b_tiles + turn.stage * B_BYTES, arrived, block * BK, n_block * BN);
          load_tile(map_a_scales, s_tiles + turn.stage * BM, arrived, m_block * BM, block);
        }
    }
    __syncwarp();
  } else {
    take_registers<MATH == 256 ? 232 : 248>();
    int group = warp_index() / 4, lane = threadIdx.x % 32;
    int upper_row = threadIdx.x / 32 * 16 + lane / 4;  // in the tile; the thread has this row and row + 8
    for (int tile = 0; schedule.tile(tile, blockIdx.x / CLUSTER, rank, m_block, n_block); ++tile) {
      const float* b_scale = b_scales + min(n_block * BN, N - 1) / SCALED * blocks;
      float total[BN / 2] = {}, d[BN / 2];
      for (int block = 0; block < blocks; ++block, turn.next()) {
        float of_b = b_scale[block];
        barrier_wait(&full[turn.stage], turn.lap);
        float* a_scale = s_tiles + turn.stage * BM + upper_row;
        float upper = a_scale[0] * of_b, lower = a_scale[8] * of_b;

        u64 a = descriptor_of(a_tiles + turn.stage * A_BYTES + group * 64 * BK);
        u64 b = descriptor_of(b_tiles + turn.stage * B_BYTES);
        pin(d);
        wgmma_fence();
#pragma unroll
        for (int step = 0; step < BK / STEP; ++step)
          wgmma_k32(d, a + step * NEXT_STEP, b + step * NEXT_STEP, step > 0);
        wgmma_commit();
        pin(d);
        wgmma_wait<0>();
        if (lane < CLUSTER) barrier_arrive_at(&empty[turn.stage], lane);  // lane i reports to block i

#pragma unroll
        for (int j = 0; j < BN / 8; ++j) {
          total[4 * j] += upper * d[4 * j];
          total[4 * j + 1] += upper * d[4 * j + 1];
          total[4 * j + 2] += lower * d[4 * j + 2];
          total[4 * j + 3] += lower * d[4 * j + 3];
        }
      }

      store_columns(D, total, m_block * BM + upper_row, n_block * BN + lane % 4 * 2, M, N);
    }
  }
  cluster_meet();  // the last reports have been made
}
