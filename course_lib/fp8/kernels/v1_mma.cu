// Rung 1, the other way: the tensor core as Ampere and Ada know it, one instruction of one warp at a time.
//
// New: mma.sync multiplies 16 x 32 by 32 x 8 from registers. The block copies tiles of 64 x 128 to shared memory
// (cp.async, past the registers; rows 16 bytes longer than they are, so that the eight rows of a request meet in no
// bank), and each of four warps computes 32 x 32 of D. Look at its machine code: for Hopper there is no FP8 in it. The
// numbers become float16 and go through HMMA, at half the rate - and with an accumulator that cuts nothing we can see.
//
// For sm_90a.
#include "store.cuh"
#include "types.cuh"

constexpr int BM = 64, BN = 64, BK = SCALED, ROW = BK + 16, STEP = 32;

// 16 bytes from global to shared memory, zeros if there is nothing to copy.
void copy16(u8* to, const u8* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(there ? 16 : 0)
               : "memory");
}

void copies_done() { asm volatile("cp.async.wait_all;" ::: "memory"); }

u32 word(const u8* at) { return *reinterpret_cast<const u32*>(at); }

void mma(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

extern "C" __global__ __launch_bounds__(128) void v1_mma(
    const u8* A,  // (M, K) e4m3
    const u8* B,  // (N, K) e4m3
    u16* D,       // (M, N) bf16
    int M, int N, int K) {
  __shared__ __align__(16) u8 a_tile[BM * ROW], b_tile[BN * ROW];
  int m0 = blockIdx.y * BM, n0 = blockIdx.x * BN;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int row0 = warp / 2 * 32, column0 = warp % 2 * 32;
  float d[2][4][4] = {};

  for (int k0 = 0; k0 < K; k0 += BK) {
    for (int piece = threadIdx.x; piece < BM * BK / 16; piece += 128) {
      int row = piece / (BK / 16), k = piece % (BK / 16) * 16;
      bool a_there = m0 + row < M && k0 + k < K, b_there = n0 + row < N && k0 + k < K;
      copy16(a_tile + row * ROW + k, A + (a_there ? u64(m0 + row) * K + k0 + k : 0), a_there);
      copy16(b_tile + row * ROW + k, B + (b_there ? u64(n0 + row) * K + k0 + k : 0), b_there);
    }
    copies_done();
    __syncthreads();

#pragma unroll
    for (int k = 0; k < BK; k += STEP) {
      // A lane holds four bytes of a row: of row lane / 4 and of the eighth after it, at byte 4 (lane % 4) and 16 on.
      u32 a[2][4], b[4][2];
      const u8* from = a_tile + (row0 + lane / 4) * ROW + k + lane % 4 * 4;
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int part = 0; part < 4; ++part) a[i][part] = word(from + (16 * i + part % 2 * 8) * ROW + part / 2 * 16);
      from = b_tile + (column0 + lane / 4) * ROW + k + lane % 4 * 4;
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int part = 0; part < 2; ++part) b[j][part] = word(from + 8 * j * ROW + part * 16);
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) mma(d[i][j], a[i], b[j]);
    }
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
      store_columns(D, d[i][j], m0 + row0 + 16 * i + lane / 4, n0 + column0 + 8 * j + lane % 4 * 2, M, N);
}
