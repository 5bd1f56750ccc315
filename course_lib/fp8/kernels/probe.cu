// The probe: one instruction of the tensor core, and its float32 accumulators as they are. No rung: what the model in
// simulators/tensor_core.py is compared with, bit by bit. D = D + A B^T for 64 x 32 and BN x 32 numbers.
//
// For sm_90a.
#include "barrier.cuh"
#include "tensor_core.cuh"
#include "tma.cuh"
#include "wgmma.cuh"

constexpr int BM = 64, BK = 128;  // a row of 128 bytes, of which TMA fills the last 96 with zeros

extern "C" __global__ __launch_bounds__(128, 1) void probe(
    const __grid_constant__ TensorMap map_a,  // (M, 32) e4m3, boxes of BM x BK, swizzled
    const __grid_constant__ TensorMap map_b,  // (N, 32) e4m3, boxes of BN x BK, swizzled
    float* D) {                               // (BM, BN): added to
  extern __shared__ __align__(1024) u8 a_tile[];  // (BM, BK), and behind it
  u8* b_tile = a_tile + BM * BK;                  // (BN, BK)
  __shared__ u64 full;
  if (threadIdx.x == 0) {
    barrier_init(&full, 1);
    barrier_init_done();
    barrier_expect(&full, (BM + BN) * BK);
    load_tile(map_a, a_tile, &full, 0, 0);
    load_tile(map_b, b_tile, &full, 0, 0);
  }
  __syncthreads();

  // Of every eight columns a thread has two in row `row` and two in row + 8.
  int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
  auto here = [&](int i) -> float& { return D[(row + i / 2 % 2 * 8) * BN + i / 4 * 8 + column + i % 2]; };
  float d[BN / 2];
#pragma unroll
  for (int i = 0; i < BN / 2; ++i) d[i] = here(i);
  barrier_wait(&full, 0);
  pin(d);
  wgmma_fence();
  wgmma_k32(d, descriptor_of(a_tile), descriptor_of(b_tile), 1);
  wgmma_commit();
  pin(d);
  wgmma_wait<0>();
#pragma unroll
  for (int i = 0; i < BN / 2; ++i) here(i) = d[i];
}
