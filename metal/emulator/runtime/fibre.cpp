// Fibre runtime: runs a Metal grid on the processor, one fibre a Metal thread,
// one threadgroup at a time on each worker.
//
// A fibre gives up the processor only where Metal threads can observe each
// other: simdgroup operations and barriers. At each such point the runtime
// knows who has arrived and from which source line, so it reports divergence
// (different ops, or lanes that left early) instead of guessing a result.
//
// This file is built without sanitizer instrumentation; under ASan and TSan it
// tells them about fibres and about the ordering that barriers create.
#include "fibre.h"
#include "../shim/msl/args.h"
#include "context.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <sys/mman.h>
#include <vector>

#if defined(MSL_ASAN)
extern "C" void __sanitizer_start_switch_fiber(void**, const void*, size_t);
extern "C" void __sanitizer_finish_switch_fiber(void*, const void**, size_t*);
extern "C" void __asan_unpoison_memory_region(const volatile void*, size_t);
extern "C" void __asan_poison_memory_region(const volatile void*, size_t);
#endif
#if defined(MSL_TSAN)
extern "C" void* __tsan_get_current_fiber(void);
extern "C" void* __tsan_create_fiber(unsigned);
extern "C" void __tsan_destroy_fiber(void*);
extern "C" void __tsan_switch_to_fiber(void*, unsigned);
extern "C" void __tsan_acquire(void*);
extern "C" void __tsan_release(void*);
#endif

using msl::dim3;

namespace {

using msl::host::kLanes;
using msl::host::kMaxShared;
using msl::host::kMaxThreads;
#if defined(MSL_TSAN)
constexpr size_t kStack = 32 << 10;  // made anew for every threadgroup
#else
constexpr size_t kStack = 64 << 10;
#endif

struct Simd;
struct Lane {
  void* sp;
  Simd* simd;
  const char* op;      // where it waits
  const char* file;
  int line;
  uint32_t index;      // thread_index_in_threadgroup
  uint32_t lane;       // thread_index_in_simdgroup
  dim3 pos;            // thread_position_in_threadgroup
  uint32_t tgseq;      // threadgroup variables declared so far
#if defined(MSL_ASAN)
  void* fake;
#endif
#if defined(MSL_TSAN)
  void* fiber;
#endif
};

// Lanes are held by schedule position; a random or reversed order permutes
// which lane sits where.
struct Simd {
  alignas(64) unsigned char slots[2][33 * MSL_SLOT_BYTES];
  Lane lane[kLanes];
  uint32_t ready, live, waiting, barrier;  // masks over positions
  uint32_t gen, index;
  uint32_t exited;
};

struct TgVar { void* base; void* mem; size_t size, align; const char* file; int line; };

// The threadgroup's memory. No vector: what a fibre allocates and the main stack
// frees would be a race to TSan.
struct Vars {
  static constexpr size_t kMost = 32;
  TgVar at[kMost];
  size_t n = 0;
  TgVar* begin() { return at; }
  TgVar* end() { return at + n; }
};

struct Group {
  Simd* simd = nullptr;
  uint32_t nsimd = 0, nthreads = 0, live = 0, at_barrier = 0;
  Simd* cur_simd = nullptr;
  Lane* cur = nullptr;
  void* main_sp = nullptr;
  dim3 id{};
  const msl_launch* L = nullptr;
  msl_run* run = nullptr;
  void (*entry)(const msl_launch*) = nullptr;
  uint64_t rng = 0;
  bool failed = false;
  Vars vars;
  void* shared = nullptr;
  char* stacks = nullptr;
#if defined(MSL_ASAN)
  void* main_fake = nullptr;
  const void* main_bottom = nullptr;
  size_t main_size = 0;
#endif
#if defined(MSL_TSAN)
  void* main_fiber = nullptr;
  std::vector<void*> garbage;
  char sync_bar;
#endif
};

thread_local Group* g;
std::mutex error_lock;
std::atomic<bool> stop;
#if defined(MSL_TSAN)
char sync_launch, sync_done;
std::vector<void*> garbage;
#endif

void fail(const char* fmt, ...) {
  std::lock_guard<std::mutex> hold(error_lock);
  g->failed = true;
  stop = true;
#if defined(MSL_TSAN)
  __tsan_acquire(&sync_done);
#endif
  if (g->run->error[0]) return;
  char msg[400];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(msg, sizeof msg, fmt, ap);
  va_end(ap);
  snprintf(g->run->error, sizeof g->run->error, "threadgroup (%u,%u,%u): %s", g->id.x, g->id.y, g->id.z, msg);
#if defined(MSL_TSAN)
  __tsan_release(&sync_done);
#endif
}

inline uint32_t rnd() {
  uint64_t x = g->rng;
  x ^= x << 13; x ^= x >> 7; x ^= x << 17;
  g->rng = x;
  return uint32_t(x >> 16);
}

inline char* stack_of(Lane* l) { return g->stacks + size_t(l->index) * kStack; }

inline int jump(void** save, Lane* to, bool dying) {
  g->cur = to;
  g->cur_simd = to->simd;
  msl_cur = {to->simd->slots[to->simd->gen & 1], to->lane};
#if defined(MSL_TSAN)
  __tsan_switch_to_fiber(to->fiber, 1);
#endif
#if defined(MSL_ASAN)
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(dying ? nullptr : &fake, stack_of(to), kStack);
  msl_switch(save, to->sp);
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
  return 0;
#else
  (void)dying;
  return msl_switch(save, to->sp);
#endif
}

inline int jump_main(void** save, bool dying) {
#if defined(MSL_TSAN)
  __tsan_switch_to_fiber(g->main_fiber, 1);
#endif
#if defined(MSL_ASAN)
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(dying ? nullptr : &fake, g->main_bottom, g->main_size);
  msl_switch(save, g->main_sp);
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
  return 0;
#else
  (void)dying;
  return msl_switch(save, g->main_sp);
#endif
}

// The next fibre that can run, or null.
inline Lane* pick() {
  Simd* s = g->cur_simd;
  if (g->run->order > 1) {
    // Random: any ready lane of any simdgroup.
    uint32_t n = g->nsimd, k = rnd() % n;
    for (uint32_t i = 0; i < n; i++) {
      Simd* c = &g->simd[(k + i) % n];
      if (!c->ready) continue;
      uint32_t r = rnd() & 31, m = (c->ready >> r) | (r ? c->ready << (32 - r) : 0);
      uint32_t p = (uint32_t(__builtin_ctz(m)) + r) & 31;
      c->ready &= ~(1u << p);
      return &c->lane[p];
    }
    return nullptr;
  }
  if (!s->ready) {
    s = nullptr;
    for (uint32_t i = 0; i < g->nsimd; i++)
      if (g->simd[i].ready) { s = &g->simd[i]; break; }
    if (!s) return nullptr;
  }
  uint32_t p = uint32_t(__builtin_ctz(s->ready));
  s->ready &= s->ready - 1;
  return &s->lane[p];
}

const Lane* find(uint32_t Simd::*mask) {
  for (uint32_t i = 0; i < g->nsimd; i++)
    if (uint32_t m = g->simd[i].*mask) return &g->simd[i].lane[__builtin_ctz(m)];
  return nullptr;
}

// Nobody can run: threads wait for others that will never come.
void deadlock() {
  const Lane* a = find(&Simd::waiting);
  const Lane* b = find(&Simd::barrier);
  if (a && b)
    fail("divergence: thread %u waits in %s at %s:%d while thread %u waits in %s at %s:%d", a->index, a->op, a->file,
         a->line, b->index, b->op, b->file, b->line);
  else if (a)
    fail("divergence: %s at %s:%d was not reached by all lanes of simdgroup %u (%d of %d arrived, %d returned early)",
         a->op, a->file, a->line, a->simd->index, __builtin_popcount(a->simd->waiting),
         __builtin_popcount(a->simd->live) + int(a->simd->exited), int(a->simd->exited));
  else if (b)
    fail("divergence: %s at %s:%d was not reached by all threads (%u of %u arrived)", b->op, b->file, b->line,
         g->at_barrier, g->nthreads);
}

inline int suspend() {
  Lane* me = g->cur;
  Lane* next = g->failed ? nullptr : pick();
  if (__builtin_expect(next != nullptr, 1)) return jump(&me->sp, next, false);
  if (!g->failed) deadlock();
  return jump_main(&me->sp, false);
}

inline uint32_t bit(const Lane* l) { return 1u << (l - l->simd->lane); }

[[noreturn]] void fiber_exit() {
  Lane* me = g->cur;
  Simd* s = me->simd;
#if defined(MSL_TSAN)
  __tsan_release(&sync_done);
#endif
  s->live &= ~bit(me);
  s->exited++;
  g->live--;
  Lane* next = g->failed ? nullptr : pick();
  void* dead;
  if (next) jump(&dead, next, true);
  if (!g->failed && g->live) deadlock();
  jump_main(&dead, true);
  abort();
}

void fiber_main() {
#if defined(MSL_ASAN)
  // First arrival on this stack; if it came from the main stack, note its bounds.
  const void* bottom; size_t size;
  __sanitizer_finish_switch_fiber(nullptr, &bottom, &size);
  if (!g->main_bottom) { g->main_bottom = bottom; g->main_size = size; }
#endif
#if defined(MSL_TSAN)
  __tsan_acquire(&sync_launch);
#endif
  g->entry(g->L);
  fiber_exit();
}

// Threadgroup memory comes from malloc, for ASan's redzones, and starts out as
// 0xFF bytes: NaN in every float format, out of range as an index.
TgVar tg_alloc(size_t size, size_t align, const char* file, int line) {
  TgVar v{malloc(size + align), nullptr, size, align, file, line};
  const uintptr_t p = (uintptr_t)v.base, a = (p + align) & ~(uintptr_t)(align - 1);
#if defined(MSL_ASAN)
  __asan_poison_memory_region((char*)a + size, p + align - a);
#endif
  // Volatile: a call to memset would look to TSan like the first thread's write.
  for (size_t i = 0; i < size; i++) ((volatile char*)a)[i] = char(0xFF);
  v.mem = (void*)a;
  return v;
}

}  // namespace

// ---- kernel side ------------------------------------------------------------------
__thread msl_current msl_cur;

extern "C" int msl_rt_rendezvous(const char* op, const char* file, int line) {
  Lane* me = g->cur;
  Simd* s = me->simd;
  me->op = op; me->file = file; me->line = line;
  if (s->waiting) {
    const Lane* o = &s->lane[__builtin_ctz(s->waiting)];
    if (o->line != line || o->op != op) {
      fail("divergence in simdgroup %u: lane %u is in %s at %s:%d, lane %u in %s at %s:%d", s->index, o->lane, o->op,
           o->file, o->line, me->lane, op, file, line);
      suspend();
    }
  }
  s->waiting |= bit(me);
  if (s->waiting == s->live && s->exited == 0) {
    s->ready |= s->waiting & ~bit(me);
    s->waiting = 0;
    s->gen++;
    msl_cur.slots = s->slots[s->gen & 1];
    return 1;
  }
  return suspend();
}

extern "C" void msl_rt_barrier(uint32_t, const char* file, int line) {
  Lane* me = g->cur;
  me->op = "threadgroup_barrier"; me->file = file; me->line = line;
  if (g->at_barrier) {
    const Lane* o = find(&Simd::barrier);
    if (o->line != line) {
      fail("divergence: thread %u is in threadgroup_barrier at %s:%d, thread %u in the one at %s:%d", o->index, o->file,
           o->line, me->index, file, line);
      suspend();
    }
  }
#if defined(MSL_TSAN)
  __tsan_release(&g->sync_bar);
#endif
  me->simd->barrier |= bit(me);
  if (++g->at_barrier == g->live && g->live == g->nthreads) {
    for (uint32_t i = 0; i < g->nsimd; i++) {
      Simd* s = &g->simd[i];
      s->ready |= s->barrier;
      s->barrier = 0;
    }
    me->simd->ready &= ~bit(me);
    g->at_barrier = 0;
  } else {
    suspend();
  }
#if defined(MSL_TSAN)
  __tsan_acquire(&g->sync_bar);
#endif
}

extern "C" void msl_rt_simd_barrier(uint32_t, const char* file, int line) {
#if defined(MSL_TSAN)
  Simd* s = g->cur_simd;
  __tsan_release(s);
#endif
  msl_rt_rendezvous("simdgroup_barrier", file, line);
#if defined(MSL_TSAN)
  __tsan_acquire(s);
#endif
}

extern "C" void msl_rt_check_lane(uint32_t lane, const char* file, int line) {
  if (lane < kLanes) return;
  fail("simd shuffle from lane %u at %s:%d", lane, file, line);
  suspend();
}

// The n-th declaration a thread meets is the n-th of the group: kernels declare
// threadgroup memory at the top of their body, outside loops and branches.
extern "C" void* msl_rt_tgvar(size_t size, size_t align, const char* file, int line) {
  uint32_t n = g->cur->tgseq++;
  if (n == g->vars.n) {
    size_t total = size;
    for (const TgVar& v : g->vars) total += v.size;
    if (total > kMaxShared || n == Vars::kMost) {
      fail("%zu bytes of threadgroup memory at %s:%d, the limit is %zu", total, file, line, kMaxShared);
      suspend();
    }
    g->vars.at[g->vars.n++] = tg_alloc(size, align, file, line);
#if defined(MSL_TSAN)
    __tsan_release(g->vars.at[n].base);  // malloc counts as this thread's write
#endif
  }
  TgVar& v = g->vars.at[n];
#if defined(MSL_TSAN)
  __tsan_acquire(v.base);
#endif
  if (v.line != line || v.size != size) {
    fail("threadgroup variable at %s:%d is declared on divergent paths", file, line);
    suspend();
  }
  return v.mem;
}

extern "C" void* msl_rt_shared(int) { return g->shared; }

namespace msl::host {
static dim3 d(const uint32_t* v) { return {v[0], v[1], v[2]}; }
dim3 thread_position_in_threadgroup() { return g->cur->pos; }
dim3 threadgroup_position_in_grid() { return g->id; }
dim3 threads_per_threadgroup() { return d(g->L->threads); }
dim3 threadgroups_per_grid() { return d(g->L->groups); }
dim3 thread_position_in_grid() {
  const uint32_t* t = g->L->threads;
  dim3 p = g->cur->pos;
  return {g->id.x * t[0] + p.x, g->id.y * t[1] + p.y, g->id.z * t[2] + p.z};
}
dim3 threads_per_grid() {
  const uint32_t *t = g->L->threads, *n = g->L->groups;
  return {t[0] * n[0], t[1] * n[1], t[2] * n[2]};
}
dim3 thread_index_in_threadgroup() { return {g->cur->index, 0, 0}; }
dim3 thread_index_in_simdgroup() { return {g->cur->lane, 0, 0}; }
dim3 simdgroup_index_in_threadgroup() { return {g->cur_simd->index, 0, 0}; }
dim3 simdgroups_per_threadgroup() { return {g->nsimd, 0, 0}; }
dim3 threads_per_simdgroup() { return {kLanes, 0, 0}; }
}  // namespace msl::host

// ---- threadgroups -----------------------------------------------------------------
namespace {

void group_run(dim3 id) {
  g->id = id;
  const uint32_t* t = g->L->threads;
  g->live = g->nthreads;
  g->at_barrier = 0;
  g->shared = nullptr;
  if (g->L->shared) {
    g->vars.at[g->vars.n++] = tg_alloc(g->L->shared, 16, "argument", 0);
    g->shared = g->vars.at[0].mem;
  }
  const uint32_t args = uint32_t(g->vars.n);
#if defined(MSL_TSAN)
  // Fresh stacks: what the last threadgroup's fibres left there is no race.
  munmap(g->stacks, g->nthreads * kStack);
  mmap(g->stacks, g->nthreads * kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
#endif
  for (uint32_t i = 0; i < g->nsimd; i++) {
    Simd* s = &g->simd[i];
    s->ready = s->live = ~0u;
    s->waiting = s->barrier = s->gen = s->exited = 0;
    s->index = i;
    uint8_t perm[kLanes];
    for (uint32_t l = 0; l < kLanes; l++) perm[l] = uint8_t(g->run->order == 1 ? kLanes - 1 - l : l);
    for (uint32_t p = 0; p < kLanes; p++) {
      Lane* l = &s->lane[p];
      l->simd = s;
      l->lane = perm[p];
      l->index = i * kLanes + l->lane;
      l->pos = {l->index % t[0], l->index / t[0] % t[1], l->index / (t[0] * t[1])};
      l->tgseq = args;
#if defined(MSL_ASAN)
      __asan_unpoison_memory_region(stack_of(l), kStack);
#endif
#if defined(MSL_TSAN)
      l->fiber = __tsan_create_fiber(1);
#endif
      // Staggered tops: stacks at one distance would share their cache sets.
      l->sp = stack_init(stack_of(l) + kStack - (l->index * 17 % 128) * 64, fiber_main);
    }
  }
  g->cur_simd = g->simd;
  Lane* first = pick();
#if defined(MSL_ASAN)
  g->main_bottom = nullptr;
  __sanitizer_start_switch_fiber(&g->main_fake, stack_of(first), kStack);
#endif
#if defined(MSL_TSAN)
  g->main_fiber = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(first->fiber, 1);
#endif
  g->cur = first;
  g->cur_simd = first->simd;
  msl_cur = {first->simd->slots[0], first->lane};
  msl_switch(&g->main_sp, first->sp);
#if defined(MSL_ASAN)
  __sanitizer_finish_switch_fiber(g->main_fake, nullptr, nullptr);
#endif
#if defined(MSL_TSAN)
  // No ordering from this threadgroup to the next: a race between two must
  // show. So its memory cannot be freed before the dispatch ends either.
  for (uint32_t i = 0; i < g->nsimd; i++)
    for (uint32_t p = 0; p < kLanes; p++) __tsan_destroy_fiber(g->simd[i].lane[p].fiber);
  for (TgVar& v : g->vars) g->garbage.push_back(v.base);
#else
  for (TgVar& v : g->vars) {
#if defined(MSL_ASAN)
    __asan_unpoison_memory_region(v.base, v.size + v.align);
#endif
    free(v.base);
  }
#endif
  g->vars.n = 0;
}

// One worker's fibre stacks, kept between dispatches.
struct Arena {
  char* stacks = nullptr;
  Simd* simds = nullptr;
  Arena() {
    stacks = (char*)mmap(nullptr, kMaxThreads * kStack, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    simds = (Simd*)aligned_alloc(64, sizeof(Simd) * (kMaxThreads / kLanes));
  }
  ~Arena() { munmap(stacks, kMaxThreads * kStack); free(simds); }
};

}  // namespace

namespace msl::host {

bool failed() { return stop.load(std::memory_order_relaxed); }

void begin(bool barrier) {
  stop = false;
#if defined(MSL_TSAN)
  if (barrier) __tsan_acquire(&sync_done);
  if (barrier) __tsan_release(&sync_launch);
#else
  (void)barrier;
#endif
}

void run_threadgroups(const msl_launch* L, const KernelInfo* k, msl_run* run, std::atomic<uint64_t>* next) {
  static thread_local Arena arena;
  Group group;
  g = &group;
  g->L = L;
  g->run = run;
  g->entry = k->entry;
  g->stacks = arena.stacks;
  g->simd = arena.simds;
  g->nthreads = L->threads[0] * L->threads[1] * L->threads[2];
  g->nsimd = g->nthreads / kLanes;
  const uint64_t gx = L->groups[0], gy = L->groups[1], n = gx * gy * L->groups[2];
  for (;;) {
    uint64_t i = next->fetch_add(1, std::memory_order_relaxed);
    if (i >= n || stop.load(std::memory_order_relaxed)) break;
    if (run->order == 1) i = n - 1 - i;
    g->rng = (uint64_t(run->order) << 32) ^ (i * 0x9E3779B97F4A7C15ull) ^ 0x1234567;
    group_run({uint32_t(i % gx), uint32_t(i / gx % gy), uint32_t(i / (gx * gy))});
    if (msl::host::end_threadgroup) msl::host::end_threadgroup();
    if (g->failed) break;
  }
#if defined(MSL_TSAN)
  // Freed once the run is over: memory that comes again would look like a race.
  garbage.insert(garbage.end(), group.garbage.begin(), group.garbage.end());
#endif
  g = nullptr;
}

void end() {
#if defined(MSL_TSAN)
  __tsan_acquire(&sync_done);
  for (void* p : garbage) free(p);
  garbage.clear();
#endif
}

}  // namespace msl::host

// clang rounds float to bfloat through this; libgcc 12 lacks it. Weak, so that a
// newer libgcc or compiler-rt wins.
extern "C" __attribute__((weak)) __bf16 __truncsfbf2(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  uint16_t r = (u & 0x7fffffff) > 0x7f800000 ? uint16_t((u >> 16) | 0x40) : uint16_t((u + 0x7fff + ((u >> 16) & 1)) >> 16);
  return __builtin_bit_cast(__bf16, r);
}
