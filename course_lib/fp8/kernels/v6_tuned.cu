// Rung 6: the whole kernel. The result leaves as it came, through shared memory and TMA, and the tile may
// have any shape that suits the matrix.
//
// New: a thread's numbers lie two by two all over its warp's rows. stmatrix brings them to shared memory in rows of 16
// bytes, swizzled so that no two of a request meet in a bank, and one thread orders the tile's way to D. It is still
// on its way while the next tile is computed. And the tile's width need not divide 128: then a tile meets two blocks of
// B's scales, and its columns take the one or the other. Widths such as 112 or 160 fill the last wave of blocks.
//
// For sm_90a.
#include "cluster.cuh"
#include "ring.cuh"
#include "roles.cuh"
#include "scheduler.cuh"
#include "store.cuh"
#include "tensor_core.cuh"
#include "wgmma.cuh"

constexpr int BK = SCALED, MATH = BM == 64 ? 128 : 256, THREADS = MATH + 128, PART = BM / CLUSTER;
constexpr int WAVES = BM * 2 / MATH;  // how often a warpgroup multiplies 64 rows for a tile
constexpr int A_BYTES = BM * BK, B_BYTES = BN * BK, S_BYTES = BM * 4;
constexpr bool TWO_SCALES = SCALED % BN != 0;
static_assert(BN % 16 == 0 && (BN <= SCALED || SCALED % (BN - SCALED) == 0), "a tile may meet two blocks of scales");

using DTile = PanelledTile<BM, BN>;  // how D's tile lies in shared memory before it leaves
constexpr int W = DTile::WIDTH, PANELS = DTile::PANELS, PANEL_BYTES = DTile::PANEL_BYTES;

extern "C" __global__ __launch_bounds__(THREADS, 1) void v6_tuned(
    const __grid_constant__ TensorMap map_a,         // (M, K) e4m3, boxes of PART x BK, swizzled
    const __grid_constant__ TensorMap map_b,         // (N, K) e4m3, boxes of BN x BK, swizzled
    const __grid_constant__ TensorMap map_a_scales,  // (blocks of K, M padded to 4) float32, boxes of 1 x BM
    const __grid_constant__ TensorMap map_d,         // (M, N) bf16, boxes of BM x W / 2, swizzled over W bytes
    const float* b_scales,                           // (blocks of N, blocks of K)
    int M, int N, int K) {
  extern __shared__ __align__(1024) u8 d_tile[];                          // (PANELS, BM, W bytes), and behind it
  u8* a_tiles = d_tile + PANELS * PANEL_BYTES;                            // (STAGES, BM, BK)
  u8* b_tiles = a_tiles + STAGES * A_BYTES;                               // (STAGES, BN, BK)
  float* s_tiles = reinterpret_cast<float*>(b_tiles + STAGES * B_BYTES);  // (STAGES, BM): the scales of A
  __shared__ u64 full[STAGES], empty[STAGES];
  int blocks = blocks_of(K, BK), rank = cluster_rank();
  Schedule schedule{blocks_of(M, BM), blocks_of(N, BN), int(gridDim.x) / CLUSTER, CLUSTER, BAND};

  if (threadIdx.x == 0) {
    prefetch_map(map_a), prefetch_map(map_b), prefetch_map(map_a_scales), prefetch_map(map_d);
    for (int stage = 0; stage < STAGES; ++stage) {
      barrier_init(&full[stage], 1);
      barrier_init(&empty[stage], CLUSTER * MATH / 32);
    }
    barrier_init_done();
  }
  cluster_meet();

  int m_block, n_block;
  Turn turn;
  if (warp_index() >= MATH / 32) {  // the producer
    give_registers<FEW_REGISTERS>();
    if (warp_index() == MATH / 32 && elect_one()) {
      for (int tile = 0; schedule.tile(tile, blockIdx.x / CLUSTER, rank, m_block, n_block); ++tile)
        for (int block = 0; block < blocks; ++block, turn.next()) {
          u64* arrived = &full[turn.stage];
          barrier_wait(&empty[turn.stage], turn.lap ^ 1);
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
  } else {  // the consumers
    take_registers<MATH == 256 ? 232 : 248>();
    int group = warp_index() / 4, warp = warp_index() % 4, lane = threadIdx.x % 32;
    for (int tile = 0; schedule.tile(tile, blockIdx.x / CLUSTER, rank, m_block, n_block); ++tile) {
      int n0 = n_block * BN, last = blocks_of(N, SCALED) - 1;
      int first_columns = SCALED - n0 % SCALED;  // columns of the tile with the first of the two scales
      const float* first_scales = b_scales + u64(min(n0 / SCALED, last)) * blocks;
      const float* second_scales = b_scales + u64(min(n0 / SCALED + 1, last)) * blocks;
      float total[WAVES][BN / 2] = {}, d[BN / 2];
      // B's scales are loaded a block of K ahead: else the first product of each would wait for them.
      float first_next = *first_scales, second_next = TWO_SCALES ? *second_scales : 0;
      for (int block = 0; block < blocks; ++block, turn.next()) {
        float first = first_next, second = second_next;
        int step = min(blocks - 1 - block, 1);  // beyond the last is nobody's memory
        first_scales += step, second_scales += step;
        first_next = *first_scales, second_next = TWO_SCALES ? *second_scales : 0;
        barrier_wait(&full[turn.stage], turn.lap);
#pragma unroll
        for (int wave = 0; wave < WAVES; ++wave) {
          int rows = (wave * (MATH / 128) + group) * 64;
          const float* a_scale = s_tiles + turn.stage * BM + rows + warp * 16 + lane / 4;
          float upper = a_scale[0], lower = a_scale[8];
          u64 a = descriptor_of(a_tiles + turn.stage * A_BYTES + rows * BK);
          u64 b = descriptor_of(b_tiles + turn.stage * B_BYTES);
          pin(d);
          wgmma_fence();
#pragma unroll
          for (int step = 0; step < BK / STEP; ++step)
            wgmma_k32(d, a + step * NEXT_STEP, b + step * NEXT_STEP, step > 0);
          wgmma_commit();
          pin(d);
          wgmma_wait<0>();
          if (wave == WAVES - 1 && lane < CLUSTER) barrier_arrive_at(&empty[turn.stage], lane);

          float upper_first = upper * first, lower_first = lower * first;
          float upper_second = upper * second, lower_second = lower * second;
#pragma unroll
          for (int j = 0; j < BN / 8; ++j) {
            bool is_first = !TWO_SCALES || 8 * j < first_columns;
            float of_upper = is_first ? upper_first : upper_second, of_lower = is_first ? lower_first : lower_second;
            total[wave][4 * j] += of_upper * d[4 * j];
            total[wave][4 * j + 1] += of_upper * d[4 * j + 1];
            total[wave][4 * j + 2] += of_lower * d[4 * j + 2];
            total[wave][4 * j + 3] += of_lower * d[4 * j + 3];
          }
        }
      }

      // The epilogue. The tile before may still be on its way: who ordered it waits, and all wait for them.
      if (threadIdx.x < PANELS) store_wait_read();
      meet<1, MATH>();
#pragma unroll
      for (int wave = 0; wave < WAVES; ++wave)
#pragma unroll
        for (int j = 0; j < BN / 16; ++j) {
          const float* x = total[wave] + 8 * j;
          int row = (wave * (MATH / 128) + group) * 64 + warp * 16 + lane % 16;
          u32 address = shared_address(d_tile + DTile::place(row, 16 * j + lane / 16 * 8));
          store_matrices(address, pack_bf16(x[0], x[1]), pack_bf16(x[2], x[3]), pack_bf16(x[4], x[5]),
                         pack_bf16(x[6], x[7]));
        }
      show_to_tma();
      meet<1, MATH>();
      if (threadIdx.x < PANELS) {
        store_tile(map_d, d_tile + threadIdx.x * PANEL_BYTES, n0 + threadIdx.x * W / 2, m_block * BM);
        store_commit();
      }
    }
    if (threadIdx.x < PANELS) store_wait();
  }
  cluster_meet();
}
