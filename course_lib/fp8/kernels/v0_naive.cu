// Rung 0: the definition. One thread computes one number of D; nothing is shared, nothing is fast.
//
//   D[m, n] = sum over blocks kb of 128:  a_scales[m, kb] * b_scales[n / 128, kb] * sum over k in kb: A[m, k] * B[n, k]
//
// It is exact to float32. K must be a multiple of 16: numbers come 16 at a time.
//
// For sm_90a.
#include "types.cuh"

// Two numbers of e4m3 as float32: there is an instruction to float16, which holds each of them exactly.
void unpack(u16 pair, float& low, float& high) {
  asm("{\n"
      ".reg .b32 both;\n"
      ".reg .b16 l, h;\n"
      "cvt.rn.f16x2.e4m3x2 both, %2;\n"
      "mov.b32 {l, h}, both;\n"
      "cvt.f32.f16 %0, l;\n"
      "cvt.f32.f16 %1, h;\n"
      "}\n"
      : "=f"(low), "=f"(high)
      : "h"(pair));
}

float dot16(uint4 a, uint4 b, float sum) {
  const u16* x = reinterpret_cast<const u16*>(&a);
  const u16* y = reinterpret_cast<const u16*>(&b);
#pragma unroll
  for (int pair = 0; pair < 8; ++pair) {
    float x0, x1, y0, y1;
    unpack(x[pair], x0, x1);
    unpack(y[pair], y0, y1);
    sum += x0 * y0;
    sum += x1 * y1;
  }
  return sum;
}

extern "C" __global__ __launch_bounds__(256) void v0_naive(
    const u8* A,            // (M, K) e4m3
    const float* a_scales,  // (M, blocks of K), a column of M after the other, columns `M_padded` apart
    const u8* B,            // (N, K) e4m3
    const float* b_scales,  // (blocks of N, blocks of K)
    u16* D,                 // (M, N) bf16
    int M, int N, int K, int M_padded) {
  int n = blockIdx.x * 16 + threadIdx.x % 16, m = blockIdx.y * 16 + threadIdx.x / 16;
  if (m >= M || n >= N) return;
  const u8* a = A + u64(m) * K;
  const u8* b = B + u64(n) * K;
  int k_blocks = blocks_of(K, SCALED);
  float total = 0;
  for (int block = 0; block < k_blocks; ++block) {
    float sum = 0;
    for (int k = block * SCALED; k < min((block + 1) * SCALED, K); k += 16)
      sum = dot16(*reinterpret_cast<const uint4*>(a + k), *reinterpret_cast<const uint4*>(b + k), sum);
    float scale = a_scales[u64(block) * M_padded + m] * b_scales[n / SCALED * k_blocks + block];
    total += scale * sum;
  }
  D[u64(m) * N + n] = u16(pack_bf16(total, 0));
}
