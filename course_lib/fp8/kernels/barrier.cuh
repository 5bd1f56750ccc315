// mbarrier: a counter in shared memory that threads arrive at, bytes are announced to, and phases come from.
#pragma once
#include "types.cuh"

void barrier_init(u64* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals));
}

// After the inits, before anybody else (TMA, another block of the cluster) may meet the barriers.
void barrier_init_done() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

void barrier_arrive(u64* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// Arrive, and announce bytes: the phase ends when all have arrived and TMA has brought them.
void barrier_expect(u64* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}

// Wait until the phase of this parity is over. A fresh barrier is in phase 0: to wait for parity 1 costs nothing.
void barrier_wait(u64* barrier, int parity) {
  asm volatile(
      "{\n"
      ".reg .pred over;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n"
      "@!over bra again;\n"
      "}\n" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}
