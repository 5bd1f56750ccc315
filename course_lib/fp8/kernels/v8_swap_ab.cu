// Rung 8: few rows. With M <= 32 at least half of a 64-row tile of A would be padding; so the sides change places.
//
// New: D transposed = B times A transposed. The weights (B) are the side with 64 rows, the tokens (A) are the columns,
// and columns come in widths of 16: a matrix with 20 tokens wastes 12 columns, not 44 rows. What changes: a thread's
// neighbours in a row are now tokens, so the scales of A differ from column to column and that of B is one number; and
// the result leaves transposed, which stmatrix does on the way (.trans).
//
// For sm_90a.
#include "barrier.cuh"
#include "ring.cuh"
#include "roles.cuh"
#include "scheduler.cuh"
#include "store.cuh"
#include "tensor_core.cuh"
#include "tma.cuh"
#include "wgmma.cuh"

constexpr int BK = SCALED, MATH = ROWS / 64 * 128, THREADS = MATH + 128, TOKENS = WGMMA_WIDTH;
constexpr int B_BYTES = ROWS * BK, A_BYTES = TOKENS * BK, S_BYTES = TOKENS * 4;
constexpr int S_ROOM = (S_BYTES + 127) / 128 * 128;
constexpr int PANEL_BYTES = TOKENS * 128;  // 64 columns of D: what a warpgroup computes
static_assert(SCALED % ROWS == 0 && TOKENS % 16 == 0, "one scale of B for a tile; two columns of matrices at a time");

extern "C" __global__ __launch_bounds__(THREADS, 1) void v8_swap_ab(
    const __grid_constant__ TensorMap map_a,         // (M, K) e4m3, boxes of TOKENS x BK, swizzled
    const __grid_constant__ TensorMap map_b,         // (N, K) e4m3, boxes of ROWS x BK, swizzled
    const __grid_constant__ TensorMap map_a_scales,  // (blocks of K, M padded to 4) float32, boxes of 1 x TOKENS
    const __grid_constant__ TensorMap map_d,         // (M, N) bf16, boxes of TOKENS x 64, swizzled over 128 bytes
    const float* b_scales,                           // (blocks of N, blocks of K)
    int M, int N, int K) {
  extern __shared__ __align__(1024) u8 d_tile[];     // (ROWS / 64, TOKENS, 64) bf16, and behind it
  u8* b_tiles = d_tile + ROWS / 64 * PANEL_BYTES;    // (STAGES, ROWS, BK)
  u8* a_tiles = b_tiles + STAGES * B_BYTES;          // (STAGES, TOKENS, BK)
  u8* s_tiles = a_tiles + STAGES * A_BYTES;          // (STAGES, TOKENS) float32
  __shared__ u64 full[STAGES], empty[STAGES];
  int blocks = blocks_of(K, BK);
  Schedule schedule{blocks_of(M, TOKENS), blocks_of(N, ROWS), int(gridDim.x), 1, BAND};

  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      barrier_init(&full[stage], 1);
      barrier_init(&empty[stage], MATH / 32);
    }
    barrier_init_done();
  }
  __syncthreads();

  int m_block, n_block;
  Turn turn;
  if (warp_index() >= MATH / 32) {
    give_registers<FEW_REGISTERS>();
    if (warp_index() == MATH / 32 && elect_one()) {
      for (int tile = 0; schedule.tile(tile, blockIdx.x, 0, m_block, n_block); ++tile)
        for (int block = 0; block < blocks; ++block, turn.next()) {
          u64* arrived = &full[turn.stage];
          barrier_wait(&empty[turn.stage], turn.lap ^ 1);
          barrier_expect(arrived, A_BYTES + B_BYTES + S_BYTES);
          load_tile(map_b, b_tiles + turn.stage * B_BYTES, arrived, block * BK, n_block * ROWS);
          load_tile(map_a, a_tiles + turn.stage * A_BYTES, arrived, block * BK, m_block * TOKENS);
          load_tile(map_a_scales, s_tiles + turn.stage * S_ROOM, arrived, m_block * TOKENS, block);
        }
    }
    return;
  }

  take_registers<MATH == 256 ? 232 : 248>();
  int group = warp_index() / 4, warp = warp_index() % 4, lane = threadIdx.x % 32;
  u8* panel = d_tile + group * PANEL_BYTES;
  for (int tile = 0; schedule.tile(tile, blockIdx.x, 0, m_block, n_block); ++tile) {
    const float* b_scale = b_scales + u64(n_block * ROWS / SCALED) * blocks;
    float total[TOKENS / 2] = {}, d[TOKENS / 2], scale[TOKENS / 4];
    for (int block = 0; block < blocks; ++block, turn.next()) {
      float of_b = b_scale[block];
      barrier_wait(&full[turn.stage], turn.lap);
      const float* of_a = reinterpret_cast<const float*>(s_tiles + turn.stage * S_ROOM) + lane % 4 * 2;
#pragma unroll
      for (int j = 0; j < TOKENS / 8; ++j) scale[2 * j] = of_a[8 * j] * of_b, scale[2 * j + 1] = of_a[8 * j + 1] * of_b;

      u64 weights = descriptor_of(b_tiles + turn.stage * B_BYTES + group * 64 * BK);
      u64 tokens = descriptor_of(a_tiles + turn.stage * A_BYTES);
      pin(d);
      wgmma_fence();
#pragma unroll
      for (int step = 0; step < BK / STEP; ++step)
        wgmma_k32(d, weights + step * NEXT_STEP, tokens + step * NEXT_STEP, step > 0);
      wgmma_commit();
      pin(d);
      wgmma_wait<0>();
      if (lane == 0) barrier_arrive(&empty[turn.stage]);

#pragma unroll
      for (int i = 0; i < TOKENS / 2; ++i) total[i] += scale[i / 4 * 2 + i % 2] * d[i];
    }

    if (threadIdx.x % 128 == 0) store_wait_read();
    meet_group(group);
#pragma unroll
    for (int j = 0; j < TOKENS / 8; j += 2) {
      int token = 8 * (j + lane / 16) + lane % 8, piece = 2 * warp + lane / 8 % 2;  // of 8 columns of D
      u32 address = shared_address(panel + swizzled<128>(token * 128 + piece * 16));
      store_transposed(address, pack_bf16(total[4 * j], total[4 * j + 1]), pack_bf16(total[4 * j + 2], total[4 * j + 3]),
                       pack_bf16(total[4 * j + 4], total[4 * j + 5]), pack_bf16(total[4 * j + 6], total[4 * j + 7]));
    }
    show_to_tma();
    meet_group(group);
    if (threadIdx.x % 128 == 0) {
      store_tile(map_d, panel, n_block * ROWS + group * 64, m_block * TOKENS);
      store_commit();
    }
  }
  if (threadIdx.x % 128 == 0) store_wait();
}
