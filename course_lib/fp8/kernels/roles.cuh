// Warps with different work in one block.
#pragma once
#include "types.cuh"

constexpr int FEW_REGISTERS = 40;

// The same in all lanes, and the compiler knows it: branches on it are no divergence.
int warp_index() { return __shfl_sync(0xffffffff, threadIdx.x / 32, 0); }

// True in one lane of a whole warp, which the hardware chooses.
bool elect_one() {
  u32 chosen;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "elect.sync _|p, 0xffffffff;\n"
      "selp.u32 %0, 1, 0, p;\n"
      "}\n"
      : "=r"(chosen));
  return chosen;
}

// Registers of a thread from now on; all four warps of a warpgroup must say so.
template <int COUNT>
void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}

template <int COUNT>
void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}
