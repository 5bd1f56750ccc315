/* The loop nests of course_lib/simulators/traces.py in C, to be run under Valgrind.
 *
 * Compiled with -O1 and no vectors: what stands in a local variable is in a register, everything else is read
 * and written where it is written here. Sizes are constants (-DN=64 -DPAD=0 -DBLOCK=16) and the arrays global, so
 * that the registers suffice and nothing but A, B, C and the packed panels is read from memory. Each nest is a
 * function, or several, of its own: cachegrind attributes its misses to it. `sweep` before each fills the caches
 * with memory of no interest. The program prints where its arrays lie.
 */
#include <stdalign.h>
#include <stdio.h>

#define NOINLINE __attribute__((noinline))
#define LD (N + PAD) /* numbers from the start of a row to the start of the next */
#define PAGE 4096
#define FOREIGN (1 << 17) /* numbers: 1 MiB, more than any cache of the tests holds */

alignas(PAGE) static double A[N][LD];
alignas(PAGE) static double B[N][LD];
alignas(PAGE) static double C[N][LD];
alignas(PAGE) static double packed_A[BLOCK * BLOCK];
alignas(PAGE) static double packed_B[BLOCK * BLOCK];
alignas(PAGE) static double foreign[FOREIGN];

NOINLINE void nest_ijk(void) {
  for (long i = 0; i < N; i++)
    for (long j = 0; j < N; j++) {
      double total = C[i][j];
      for (long k = 0; k < N; k++) total += A[i][k] * B[k][j];
      C[i][j] = total;
    }
}

NOINLINE void nest_jik(void) {
  for (long j = 0; j < N; j++)
    for (long i = 0; i < N; i++) {
      double total = C[i][j];
      for (long k = 0; k < N; k++) total += A[i][k] * B[k][j];
      C[i][j] = total;
    }
}

NOINLINE void nest_ikj(void) {
  for (long i = 0; i < N; i++)
    for (long k = 0; k < N; k++) {
      double a = A[i][k];
      for (long j = 0; j < N; j++) C[i][j] += a * B[k][j];
    }
}

NOINLINE void nest_kij(void) {
  for (long k = 0; k < N; k++)
    for (long i = 0; i < N; i++) {
      double a = A[i][k];
      for (long j = 0; j < N; j++) C[i][j] += a * B[k][j];
    }
}

NOINLINE void nest_jki(void) {
  for (long j = 0; j < N; j++)
    for (long k = 0; k < N; k++) {
      double b = B[k][j];
      for (long i = 0; i < N; i++) C[i][j] += A[i][k] * b;
    }
}

NOINLINE void nest_kji(void) {
  for (long k = 0; k < N; k++)
    for (long j = 0; j < N; j++) {
      double b = B[k][j];
      for (long i = 0; i < N; i++) C[i][j] += A[i][k] * b;
    }
}

#define END(low) ((low) + BLOCK < N ? (low) + BLOCK : N)

NOINLINE void nest_blocked_block(long i0, long j0, long k0) {
  long i1 = END(i0), j1 = END(j0), k1 = END(k0);
  for (long i = i0; i < i1; i++)
    for (long k = k0; k < k1; k++) {
      double a = A[i][k];
      for (long j = j0; j < j1; j++) C[i][j] += a * B[k][j];
    }
}

NOINLINE void nest_blocked(void) {
  for (long i0 = 0; i0 < N; i0 += BLOCK)
    for (long j0 = 0; j0 < N; j0 += BLOCK)
      for (long k0 = 0; k0 < N; k0 += BLOCK) nest_blocked_block(i0, j0, k0);
}

/* Packed: square blocks, N a multiple of them; the micro-kernel keeps 2 x 2 of C in registers. */
NOINLINE void nest_packed_B(long pc, long jc) {
  double *to = packed_B;
  for (long j = jc; j < jc + BLOCK; j += 2)
    for (long k = pc; k < pc + BLOCK; k++) {
      *to++ = B[k][j];
      *to++ = B[k][j + 1];
    }
}

NOINLINE void nest_packed_A(long ic, long pc) {
  double *to = packed_A;
  for (long i = ic; i < ic + BLOCK; i += 2)
    for (long k = pc; k < pc + BLOCK; k++) {
      *to++ = A[i][k];
      *to++ = A[i + 1][k];
    }
}

NOINLINE void nest_packed_tiles(double *corner) {
  for (long j = 0; j < BLOCK; j += 2)
    for (long i = 0; i < BLOCK; i += 2) {
      const double *a = packed_A + i * BLOCK, *b = packed_B + j * BLOCK;
      double c00 = 0, c01 = 0, c10 = 0, c11 = 0;
      for (long k = 0; k < BLOCK; k++, a += 2, b += 2) {
        double b0 = b[0], b1 = b[1], a0 = a[0], a1 = a[1];
        c00 += a0 * b0, c01 += a0 * b1, c10 += a1 * b0, c11 += a1 * b1;
      }
      double *c = corner + i * LD + j;
      c[0] += c00, c[1] += c01, c[LD] += c10, c[LD + 1] += c11;
    }
}

NOINLINE void nest_packed(void) {
  for (long jc = 0; jc < N; jc += BLOCK)
    for (long pc = 0; pc < N; pc += BLOCK) {
      nest_packed_B(pc, jc);
      for (long ic = 0; ic < N; ic += BLOCK) {
        nest_packed_A(ic, pc);
        nest_packed_tiles(&C[ic][jc]);
      }
    }
}

NOINLINE double sweep(void) {
  double total = 0;
  for (long n = 0; n < FOREIGN; n += 2) total += foreign[n];
  return total;
}

int main(void) {
  double total = 0;
  for (long i = 0; i < N; i++)
    for (long j = 0; j < LD; j++) A[i][j] = 1.0 / (i + j + 1), B[i][j] = i - j;
  for (long n = 0; n < FOREIGN; n++) foreign[n] = n;
  printf("A %p\nB %p\nC %p\n", (void *)A, (void *)B, (void *)C);
  printf("packed_A %p\npacked_B %p\n", (void *)packed_A, (void *)packed_B);
  fflush(stdout);
  total += sweep(), nest_ijk();
  total += sweep(), nest_ikj();
  total += sweep(), nest_jik();
  total += sweep(), nest_jki();
  total += sweep(), nest_kij();
  total += sweep(), nest_kji();
  total += sweep(), nest_blocked();
  if (N % BLOCK == 0) total += sweep(), nest_packed();
  printf("sum %g\n", total + C[N - 1][N - 1]);
  return 0;
}
