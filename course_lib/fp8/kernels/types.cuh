// The words of these kernels. No header of CUDA's is needed: what we use of PTX stands in tma.cuh, barrier.cuh ...
#pragma once

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

struct alignas(64) TensorMap { u64 words[16]; };  // CUtensorMap: 128 bytes that only TMA reads

constexpr int SCALED = 128;  // numbers of K that share a scale: 128 bytes, a row of every tile

// The address of shared memory as PTX wants it.
u32 shared_address(const void* pointer) { return static_cast<u32>(__cvta_generic_to_shared(pointer)); }

// Two numbers as bf16 in a register, rounded to nearest even; `low` lies first in memory.
u32 pack_bf16(float low, float high) {
  u32 both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}

int blocks_of(int n, int size) { return (n + size - 1) / size; }
