/* The loop nests of course_lib/simulators/traces.py in C, to be run under Valgrind.
 *
 * Compiled with -O1 and no vectors: what stands in a local variable is in a register, everything else is read
 * and written where it is written here. Sizes are constants (-DN=64 -DPAD=0 -DBLOCK=16) and the arrays global, so
 * that the registers suffice and nothing but A, B and C is read from memory. Each nest is a function of its own:
 * cachegrind attributes its misses to it. `sweep` before each fills the caches with memory of no interest. The
 * program prints where its arrays lie.
 */
#include <stdalign.h>
#include <stdio.h>

#define LD (N + PAD) /* numbers from the start of a row to the start of the next */
#define PAGE 4096
#define FOREIGN (1 << 17) /* numbers: 1 MiB, more than any cache of the tests holds */

alignas(PAGE) static double A[N][LD];
alignas(PAGE) static double B[N][LD];
alignas(PAGE) static double C[N][LD];
alignas(PAGE) static double foreign[FOREIGN];

#define NEST(order) __attribute__((noinline)) void nest_##order(void)
#define FOR(x) for (long x = 0; x < N; x++)
#define SUM_OF_K { double c = C[i][j]; FOR(k) c += A[i][k] * B[k][j]; C[i][j] = c; }
#define ALONG_J { double a = A[i][k]; FOR(j) C[i][j] += a * B[k][j]; }
#define ALONG_I { double b = B[k][j]; FOR(i) C[i][j] += A[i][k] * b; }

NEST(ijk) { FOR(i) FOR(j) SUM_OF_K }
NEST(jik) { FOR(j) FOR(i) SUM_OF_K }
NEST(ikj) { FOR(i) FOR(k) ALONG_J }
NEST(kij) { FOR(k) FOR(i) ALONG_J }
NEST(jki) { FOR(j) FOR(k) ALONG_I }
NEST(kji) { FOR(k) FOR(j) ALONG_I }

#define END(low) ((low) + BLOCK < N ? (low) + BLOCK : N)

__attribute__((noinline)) void nest_blocked_block(long i0, long j0, long k0) {
  long i1 = END(i0), j1 = END(j0), k1 = END(k0);
  for (long i = i0; i < i1; i++)
    for (long k = k0; k < k1; k++) {
      double a = A[i][k];
      for (long j = j0; j < j1; j++) C[i][j] += a * B[k][j];
    }
}

NEST(blocked) {
  for (long i0 = 0; i0 < N; i0 += BLOCK)
    for (long j0 = 0; j0 < N; j0 += BLOCK)
      for (long k0 = 0; k0 < N; k0 += BLOCK) nest_blocked_block(i0, j0, k0);
}

__attribute__((noinline)) double sweep(void) {
  double total = 0;
  for (long n = 0; n < FOREIGN; n += 2) total += foreign[n];
  return total;
}

int main(void) {
  void (*nests[])(void) = {nest_ijk, nest_ikj, nest_jik, nest_jki, nest_kij, nest_kji, nest_blocked};
  double total = 0;
  for (long i = 0; i < N; i++)
    for (long j = 0; j < LD; j++) A[i][j] = 1.0 / (i + j + 1), B[i][j] = i - j;
  for (long n = 0; n < FOREIGN; n++) foreign[n] = n;
  printf("A %p\nB %p\nC %p\n", (void *)A, (void *)B, (void *)C);
  fflush(stdout);
  for (unsigned long n = 0; n < sizeof nests / sizeof *nests; n++) total += sweep(), nests[n]();
  printf("sum %g\n", total + C[N - 1][N - 1]);
  return 0;
}
