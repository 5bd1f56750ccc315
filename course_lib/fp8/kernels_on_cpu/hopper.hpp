// A Hopper for one cluster at a time, on a CPU: what the kernels' headers say in PTX, said in C++.
//
// Every GPU thread is a fiber, so all interleaving is ours: in every round the threads take their turns in a random
// order, each up to its next wait, and now and then a warp has other things to do. TMA delivers when it
// likes, and wgmma reads its tiles at once in some blocks, in others only when it is waited for: several seeds find out
// who relies on luck. When nobody can go on, that is said, and nothing hangs.
#pragma once
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = unsigned long long;
using std::max;
using std::min;

#define __global__
#define __grid_constant__
#define __launch_bounds__(...)
#define threadIdx (now->index)
#define blockIdx (now->block->index)

struct Place { int x, y; };
struct uint4 { u32 x, y, z, w; };

struct TensorMap {  // as the driver is told, innermost first; strides in bytes
  u8* address;
  int size, rank, swizzle;
  int64_t dims[3], strides[3], box[3];
};

constexpr int MOST_BARRIERS = 8, STATIC_BYTES = 2048;  // shared memory begins behind what is reserved

struct Block;

struct Barrier {
  int arrivals = 0, missing = 0, phase = 0;
  int64_t bytes = 0;
  void turn() {
    if (missing == 0 && bytes == 0) ++phase, missing = arrivals;
  }
};

struct Product {  // a wgmma that has begun; group 0: not committed yet
  float* d;
  int count;
  u64 a, b;
  int add, group = 0;
  bool done = false;
};

struct Copy {  // an order to TMA; `thread` has committed it, if it is a store
  TensorMap map;
  Block* block;
  u32 place;
  int64_t at[3];
  int barrier;  // -1 for a store
  struct Thread* thread;
  int delay;  // rounds
};

struct Stack {  // below it lies what nobody may touch: who needs more is stopped, and spoils no neighbour
  static constexpr int BYTES = 1 << 16, GUARD = 1 << 16;  // whole pages, however large; compiled to touch each page
  char* room = static_cast<char*>(
      mmap(nullptr, GUARD + BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  Stack() {
    if (room == MAP_FAILED || mprotect(room, GUARD, PROT_NONE)) throw std::bad_alloc();
  }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
  ~Stack() { munmap(room, GUARD + BYTES); }
};

struct Thread {
  ucontext_t context;
  Stack stack;
  Block* block;
  Place index;
  std::function<bool()> wait;
  bool done = false, fenced = false;
  std::vector<Product> products;  // that have begun, and how many groups of them were committed
  int groups = 0;
  std::vector<float> sums;  // the accumulators as the last product left them
  std::vector<Copy> ordered;  // stores, not committed yet
  int on_the_way = 0;         // stores, committed
  std::vector<u32> written;   // pieces of 16 bytes that TMA need not see yet
};

struct Meeting { int met = 0, number = 0; };

struct Block {
  Place index;
  int rank, threads, alive;
  int at_start;  // registers of a thread when a block begins: alike for all, as many as 64 K give, in eights
  int pool = 0;  // that were given back and not taken yet
  u64 full[MOST_BARRIERS], empty[MOST_BARRIERS];
  Barrier barriers[2 * MOST_BARRIERS];
  std::vector<u8> room;
  u8* memory;
  std::vector<char> hidden;  // pieces of 16 bytes, written and not shown to TMA
  Meeting meetings[16];
  struct { u32 address, registers[6]; } lanes[32][32];  // of each warp
  Meeting warps[32];
  bool early = false;  // does wgmma read its tiles at once?
  int idle[32] = {};  // rounds for which a warp has other things to do

  Block(Place index, int rank, int threads, int dynamic_bytes)
      : index(index), rank(rank), threads(threads), alive(threads), at_start(min(65536 / threads, 255) / 8 * 8),
        room(STATIC_BYTES + dynamic_bytes + 1024, 0xff) {
    memory = room.data() + (-reinterpret_cast<uintptr_t>(room.data()) & 1023);
    hidden.resize((STATIC_BYTES + dynamic_bytes) / 16);
  }
  u8* dynamic() { return memory + STATIC_BYTES; }
  int bytes() const { return 16 * static_cast<int>(hidden.size()); }
};

inline Thread* now;
inline ucontext_t home;
inline std::string problem;
inline std::mt19937 chance;
inline std::vector<std::unique_ptr<Block>> cluster;
inline std::vector<std::unique_ptr<Thread>> everybody;
inline std::vector<Copy> copies;
inline Meeting all_blocks;
inline Place gridDim;
inline const float* e4m3;  // the value of every code
inline bool overlapped;    // has a product begun while one of an earlier group was in flight?

// -- waiting -----------------------------------------------------------------------------------------------

inline void give_way(std::function<bool()> until = nullptr) {
  now->wait = until;
  swapcontext(&now->context, &home);
}

inline void wrong(const std::string& what) {
  if (problem.empty()) problem = what;
  if (now) give_way([] { return false; });
}

inline void meet(Meeting& meeting, int threads) {
  int number = meeting.number;
  if (++meeting.met == threads) meeting.met = 0, ++meeting.number;
  Meeting* m = &meeting;
  give_way([m, number] { return m->number != number; });
}

inline void __syncthreads() { meet(now->block->meetings[0], now->block->threads); }
inline void __syncwarp(u32 lanes = ~0u) {
  if (lanes != ~0u) wrong("The model knows __syncwarp() of whole warps only.");
  meet(now->block->warps[now->index.x / 32], 32);
}
template <int ID, int THREADS> void meet() { meet(now->block->meetings[ID], THREADS); }
inline void meet_group(int group) { meet(now->block->meetings[group + 1], 128); }
inline void cluster_meet() { meet(all_blocks, cluster[0]->threads * static_cast<int>(cluster.size())); }

// -- barriers ----------------------------------------------------------------------------------------------

inline int number_of(const u64* barrier) {
  const Block& block = *now->block;
  if (barrier >= block.full && barrier < block.full + MOST_BARRIERS) return barrier - block.full;
  if (barrier >= block.empty && barrier < block.empty + MOST_BARRIERS) return MOST_BARRIERS + (barrier - block.empty);
  wrong("A barrier was used that does not exist.");
  return 0;
}

inline void arrive(Block& block, int number, int64_t bytes) {
  Barrier& barrier = block.barriers[number];
  if (!block.alive) wrong("A signal went to a block that had ended.");
  if (!barrier.missing) wrong("A barrier got more arrivals than its phase has.");
  --barrier.missing, barrier.bytes += bytes;
  barrier.turn();
}

inline void barrier_init(u64* b, int arrivals) {
  Barrier& barrier = now->block->barriers[number_of(b)];
  barrier = Barrier{arrivals, arrivals};
}
inline void barrier_init_done() {}
inline void barrier_expect(u64* b, int bytes) { arrive(*now->block, number_of(b), bytes), give_way(); }
inline void barrier_arrive(u64* b) { barrier_expect(b, 0); }
inline void barrier_arrive_at(u64* b, int rank) { arrive(*cluster[rank], number_of(b), 0), give_way(); }
inline void barrier_wait(u64* b, int parity) {
  Barrier* barrier = &now->block->barriers[number_of(b)];
  give_way([barrier, parity] { return (barrier->phase - 1 & 1) == parity; });
}

// -- roles -------------------------------------------------------------------------------------------------

constexpr int FEW_REGISTERS = 40;
inline int warp_index() { return now->index.x / 32; }
inline int cluster_rank() { return now->block->rank; }
inline bool elect_one() { return now->index.x % 32 == 5; }
template <int COUNT> void give_registers() {
  now->block->pool += now->block->at_start - COUNT;
  give_way();
}
template <int COUNT> void take_registers() {  // waits until others have given enough
  Block* block = now->block;
  int more = COUNT - block->at_start;
  if (more > block->pool) give_way([block, more] { return block->pool >= more; });
  block->pool -= more;
}

// -- TMA ---------------------------------------------------------------------------------------------------

inline u32 shared_address(const void* pointer) { return static_cast<const u8*>(pointer) - now->block->memory; }

// Calls `piece(shared memory, global memory or null)` for every element of the box.
template <class Piece> void walk(const Copy& copy, Piece piece) {
  const TensorMap& map = copy.map;
  u32 place = copy.place;
  for (int64_t z = 0; z < map.box[2]; ++z)
    for (int64_t y = 0; y < map.box[1]; ++y)
      for (int64_t x = 0; x < map.box[0]; ++x, place += map.size) {
        int64_t at[3] = {copy.at[0] + x, copy.at[1] + y, copy.at[2] + z}, byte = 0;
        bool inside = true;
        for (int i = 0; i < 3; ++i) inside &= at[i] >= 0 && at[i] < map.dims[i], byte += at[i] * map.strides[i];
        u32 swizzled = map.swizzle ? place ^ (place >> 7 & (map.swizzle / 16 - 1)) << 4 : place;
        piece(swizzled, inside ? map.address + byte : nullptr);
      }
}

inline int64_t box_bytes(const TensorMap& map) { return map.size * map.box[0] * map.box[1] * map.box[2]; }

inline bool reads(const Product& p, u32 place, u32 bytes) {  // any of these bytes: rows of 128, of A and of B
  auto meets = [&](u64 descriptor, u32 rows) {
    u32 first = (descriptor & 0x3fff) << 4 & ~127u;
    return first < place + bytes && place < first + rows * 128;
  };
  return meets(p.a, 64) || meets(p.b, p.count * 2);
}

inline void deliver(Copy copy) {
  Block& block = *copy.block;
  int size = copy.map.size;
  if (!block.alive) return wrong("A copy was on its way when its block ended.");
  if (copy.barrier < 0) {
    walk(copy, [&](u32 from, u8* to) { if (to) memcpy(to, block.memory + from, size); });
    --copy.thread->on_the_way;
    return;
  }
  for (auto& thread : everybody)
    for (const Product& product : thread->products)
      if (thread->block == &block && reads(product, copy.place, box_bytes(copy.map)))
        return wrong("A stage was written while a product read it.");
  walk(copy, [&](u32 to, u8* from) {
    from ? memcpy(block.memory + to, from, size) : memset(block.memory + to, 0, size);
  });
  block.barriers[copy.barrier].bytes -= box_bytes(copy.map);
  block.barriers[copy.barrier].turn();
}

inline int delay() { return chance() % 6 ? chance() % 4 : chance() % 100; }  // some take very long

inline void order(const TensorMap& map, Block& block, const void* tile, u64* full, int x, int y, int z) {
  u32 place = shared_address(tile);
  if (place % (map.swizzle ? 8 * map.swizzle : 128)) wrong("A tile begins where TMA can put none.");
  if (place < STATIC_BYTES || place + box_bytes(map) > block.bytes()) wrong("A tile reaches out of shared memory.");
  Copy copy{map, &block, place, {x, y, z}, full ? number_of(full) : -1, now, delay()};
  full ? copies.push_back(copy) : now->ordered.push_back(copy);
}

inline void prefetch_map(const TensorMap&) {}
inline void load_tile(const TensorMap& map, void* tile, u64* full, int x, int y, int z = 0) {
  order(map, *now->block, tile, full, x, y, z), give_way();
}
inline void load_tile_everywhere(const TensorMap& map, void* tile, u64* full, int x, int y, int z, u16 blocks) {
  for (auto& block : cluster)
    if (blocks >> block->rank & 1) order(map, *block, tile, full, x, y, z);
  give_way();
}
inline void load_tile_everywhere(const TensorMap& map, void* tile, u64* full, int x, int y, u16 blocks) {
  load_tile_everywhere(map, tile, full, x, y, 0, blocks);
}

inline void show_to_tma() {
  for (u32 piece : now->written) now->block->hidden[piece] = 0;
  now->written.clear();
  give_way();
}
inline void store_tile(const TensorMap& map, const void* tile, int x, int y, int z = 0) {
  order(map, *now->block, tile, nullptr, x, y, z);
  u32 first = shared_address(tile) / 16;
  for (u32 piece = first; piece < first + box_bytes(map) / 16; ++piece)
    if (now->block->hidden[piece]) wrong("A tile was stored before it was shown to TMA.");
}
inline void store_commit() {
  now->on_the_way += now->ordered.size();
  copies.insert(copies.end(), now->ordered.begin(), now->ordered.end());
  now->ordered.clear();
  give_way();
}
inline void store_wait() {
  Thread* thread = now;
  give_way([thread] { return !thread->on_the_way; });
}
inline void store_wait_read() { store_wait(); }

// -- the tensor core ---------------------------------------------------------------------------------------

template <int COUNT> void pin(float (&)[COUNT]) {}
inline void wgmma_fence() { now->fenced = true; }
inline float number(u64 descriptor, int row, int k) {
  u32 place = ((descriptor & 0x3fff) << 4) + row / 8 * (descriptor >> 32 & 0x3fff) * 16 + row % 8 * 128 + k;
  if (int(place) >= now->block->bytes()) wrong("A product reads beyond shared memory.");
  return e4m3[now->block->memory[place ^ (place >> 7 & 7) << 4]];
}

inline void multiply(Product& p) {
  if (p.done) return;
  p.done = true;
  int lane = now->index.x % 32, upper = now->index.x / 32 % 4 * 16 + lane / 4;
  if (p.a >> 62 != 1 || p.b >> 62 != 1) wrong("A descriptor says nothing of swizzled tiles.");
  float a[2][32];
  for (int k = 0; k < 32; ++k) a[0][k] = number(p.a, upper, k), a[1][k] = number(p.a, upper + 8, k);
  for (int i = 0; i < p.count; i += 4)
    for (int side = 0; side < 2; ++side) {
      double sums[2] = {};
      for (int k = 0; k < 32; ++k) {
        double b = number(p.b, i * 2 + lane % 4 * 2 + side, k);
        sums[0] += a[0][k] * b, sums[1] += a[1][k] * b;
      }
      for (int half = 0; half < 2; ++half) {
        float& d = p.d[i + 2 * half + side];
        d = p.add ? d + sums[half] : sums[half];
      }
    }
}

inline void must_be_untouched(const Product& p) {
  if (now->sums.size() != p.count || memcmp(now->sums.data(), p.d, 4 * p.count))
    wrong("The accumulators were touched while products were in flight.");
}

template <int COUNT> void wgmma_k32(float (&d)[COUNT], u64 a, u64 b, int add) {
  auto& products = now->products;
  if (!now->fenced) wrong("wgmma began without a fence.");
  if (!products.empty() && products.back().d == d) must_be_untouched(products.back());
  for (const Product& product : products) overlapped |= product.group != 0;
  bool all_done = products.empty() || products.back().done;
  products.push_back({d, COUNT, a, b, add});
  if (all_done && now->block->early) multiply(products.back());
  now->sums.assign(d, d + COUNT);
}

inline void wgmma_commit() {
  ++now->groups;
  for (Product& product : now->products) product.group = product.group ? product.group : now->groups;
  now->fenced = false;  // the next group has its own
}

// Of the groups that were committed, all but the last PENDING are done: for all lanes of a warp at once.
template <int PENDING> void wgmma_wait() {
  __syncwarp();
  auto& products = now->products;
  if (products.empty()) return;
  const Product last = products.back();
  must_be_untouched(last);
  auto in_flight = [](const Product& product) { return !product.group || product.group > now->groups - PENDING; };
  for (Product& product : products)
    if (!in_flight(product)) multiply(product);
  now->sums.assign(last.d, last.d + last.count);
  products.erase(std::remove_if(products.begin(), products.end(), std::not_fn(in_flight)), products.end());
  __syncwarp();
}

// -- the epilogue ------------------------------------------------------------------------------------------

inline u32 bf16(float x) {
  u32 bits;
  memcpy(&bits, &x, 4);
  return x != x ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
inline u32 pack_bf16(float low, float high) { return bf16(low) | bf16(high) << 16; }

inline void store_rows(u32 address, u32 a, u32 b, u32 c, u32 d, bool transposed) {
  int warp = now->index.x / 32, lane = now->index.x % 32;
  auto& lanes = now->block->lanes[warp];
  lanes[lane] = {address, {a, b, c, d}};
  if (address % 16 || int(address) + 16 > now->block->bytes()) wrong("stmatrix got an address that cannot be.");
  meet(now->block->warps[warp], 32);
  for (int i = 0; i < 8; ++i) {  // element i of the row whose address this lane gave
    int row = transposed ? i : lane % 8, column = transposed ? lane % 8 : i;
    u16 value = lanes[4 * row + column / 2].registers[lane / 8] >> column % 2 * 16;
    memcpy(now->block->memory + address + 2 * i, &value, 2);
  }
  now->block->hidden[address / 16] = 1;
  now->written.push_back(address / 16);
  meet(now->block->warps[warp], 32);
}
inline void store_matrices(u32 address, u32 a, u32 b, u32 c, u32 d) { store_rows(address, a, b, c, d, false); }
inline void store_transposed(u32 address, u32 a, u32 b, u32 c, u32 d) { store_rows(address, a, b, c, d, true); }

// -- what two kernels say in PTX themselves ----------------------------------------------------------------

inline void unpack(u16 pair, float& low, float& high) { low = e4m3[pair & 255], high = e4m3[pair >> 8]; }

inline void copy16(u8* to, const u8* from, bool there) { there ? memcpy(to, from, 16) : memset(to, 0, 16); }
inline void copies_done() {}

inline void mma(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {  // m16n8k32: four bytes of K in a register
  int warp = now->index.x / 32, lane = now->index.x % 32;
  auto& lanes = now->block->lanes[warp];
  lanes[lane] = {0, {a[0], a[1], a[2], a[3], b[0], b[1]}};
  meet(now->block->warps[warp], 32);
  for (int i = 0; i < 4; ++i) {
    int below = i / 2, column = lane % 4 * 2 + i % 2;
    for (int k = 0; k < 32; ++k) {
      u32 x = lanes[lane / 4 * 4 + k % 16 / 4].registers[below + k / 16 * 2];
      u32 y = lanes[column * 4 + k % 16 / 4].registers[4 + k / 16];
      d[i] += e4m3[x >> k % 4 * 8 & 255] * e4m3[y >> k % 4 * 8 & 255];
    }
  }
  meet(now->block->warps[warp], 32);
}

// -- running -----------------------------------------------------------------------------------------------

inline std::function<void()> kernel;

inline void life() {
  kernel();
  now->done = true;
  --now->block->alive;
  for (const Product& product : now->products)
    wrong(product.group ? "A thread ended while its products were in flight." : "Products were never committed.");
  if (now->on_the_way || !now->ordered.empty()) wrong("A thread ended before its stores had arrived.");
  swapcontext(&now->context, &home);
}

inline void run_cluster(Place first, int blocks, int threads, int dynamic_bytes, int odd) {
  cluster.clear(), everybody.clear(), copies.clear(), all_blocks = {};
  for (int rank = 0; rank < blocks; ++rank) {
    cluster.emplace_back(new Block({first.x + rank, first.y}, rank, threads, dynamic_bytes));
    std::fill_n(cluster.back()->idle, 32, chance() % 2 * 200);  // blocks need not begin together
    cluster.back()->early = (odd + first.x + first.y + rank) % 2;
    for (int x = 0; x < threads; ++x) {
      everybody.emplace_back(new Thread);
      Thread& thread = *everybody.back();
      thread.block = cluster.back().get(), thread.index = {x, 0};
      getcontext(&thread.context);
      thread.context.uc_stack.ss_sp = thread.stack.room + Stack::GUARD, thread.context.uc_stack.ss_size = Stack::BYTES;
      makecontext(&thread.context, life, 0);
    }
  }
  std::vector<Thread*> order;
  for (auto& thread : everybody) order.push_back(thread.get());
  while (!order.empty() && problem.empty()) {
    bool moved = false;
    std::shuffle(order.begin(), order.end(), chance);
    for (Thread* thread : order) {
      if (thread->wait && !thread->wait()) continue;
      int& idle = thread->block->idle[thread->index.x / 32];
      if (idle) { moved = true; continue; }
      thread->wait = nullptr, now = thread, moved = true;
      swapcontext(&home, &thread->context);
      if (!problem.empty()) return;
    }
    now = nullptr;
    for (auto& block : cluster)
      for (int& idle : block->idle) idle = idle ? idle - 1 : chance() % 64 ? 0 : chance() % 150;
    order.erase(std::remove_if(order.begin(), order.end(), [](Thread* t) { return t->done; }), order.end());
    std::vector<Copy> waiting;
    std::shuffle(copies.begin(), copies.end(), chance);
    waiting.swap(copies);
    for (Copy& copy : waiting) {
      if (copy.delay-- > 0) copies.push_back(copy);
      else deliver(copy);
      moved = true;
    }
    if (!moved) wrong("Everybody waits.");
  }
  if (!copies.empty()) wrong("A copy was on its way when its block ended.");
}

struct Launch {
  Place grid;
  int cluster, threads, dynamic_bytes, seed;
  const float* e4m3;
};

struct Address {  // of any type
  void* pointer;
  template <class T> operator T*() const { return static_cast<T*>(pointer); }
};

inline void no_such_memory(int) {
  if (!now) signal(SIGSEGV, SIG_DFL);  // a fault of this file
  else wrong("A thread went beyond what it was given.");
}

inline const char* run(const Launch& launch) {
  static char aside[1 << 16];  // where the handler runs: the thread's own stack may be at its end
  stack_t usual, other = {};
  other.ss_sp = aside, other.ss_size = sizeof aside;
  sigaltstack(&other, &usual);
  struct sigaction before, here = {};
  here.sa_handler = no_such_memory, here.sa_flags = SA_NODEFER | SA_ONSTACK;
  sigaction(SIGSEGV, &here, &before);
  problem.clear(), chance.seed(launch.seed), gridDim = launch.grid, e4m3 = launch.e4m3, now = nullptr;
  overlapped = false;
  for (int y = 0; y < launch.grid.y; ++y)
    for (int x = 0; x < launch.grid.x && problem.empty(); x += launch.cluster)
      run_cluster({x, y}, launch.cluster, launch.threads, launch.dynamic_bytes, launch.seed % 2);
  sigaction(SIGSEGV, &before, nullptr);
  sigaltstack(&usual, nullptr);
  return problem.c_str();
}
