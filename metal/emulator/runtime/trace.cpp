// Counts what kernels read and write of each buffer, and their arithmetic. Linked
// into the library whose kernels clang made to report every load and store, and
// irflops to count; other builds have none of it. One worker only.
//
// Distinct bytes are those touched at all. Total bytes count again what is read
// again: by another simdgroup, by the same lane once more, or in another width.
// Lanes of one simdgroup that read the same bytes share a read, as on a GPU.
#include "fibre.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <unordered_map>
#include <vector>

#include "../shim/msl/args.h"

namespace {

constexpr size_t kGrain = 2;  // bytes, the narrowest value

struct Count { uint64_t distinct, total; };

struct Watch {
  char* data;
  size_t size;
  std::vector<uint64_t> touched[2];  // a bit a grain: loads, stores
  Count counts[2];

  // touch marks aligned bytes, at most 16 of them, and returns how many are new.
  size_t touch(int kind, size_t at, size_t bytes) {
    uint64_t& word = touched[kind][at / kGrain / 64];
    const uint64_t mask = ((uint64_t(1) << (bytes + kGrain - 1) / kGrain) - 1) << at / kGrain % 64;
    const int added = std::popcount(mask & ~word);
    word |= mask;
    return size_t(added) * kGrain;
  }
};

std::vector<Watch*> watches;  // by address
Watch* last;

// How often each lane of a simdgroup touched the same bytes, and the most of these.
struct Turns { uint8_t most, by_lane[32]; };

// What one simdgroup did, in one width, to 64 neighbours of that width.
struct Page { Turns at[64]; };

// The pages of the threadgroup that runs. Neighbours lie together, as a kernel's
// lanes go through them.
struct Pages {
  std::unordered_map<uint64_t, Page*> by_key;
  std::deque<Page> pool;
  size_t used = 0;
  uint64_t last_key = ~uint64_t(0);
  Page* last = nullptr;

  Page* find(uint64_t key) {
    if (key == last_key) return last;
    Page*& page = by_key[key];
    if (!page) {
      if (used == pool.size()) pool.emplace_back();
      page = &pool[used++];
      *page = {};
    }
    last_key = key;
    return last = page;
  }
  void clear() {
    by_key.clear();
    used = 0;
    last_key = ~uint64_t(0);
  }
};
Pages pages;

Watch* find(char* p) {
  if (last && p >= last->data && p < last->data + last->size) return last;
  auto at = std::upper_bound(watches.begin(), watches.end(), p, [](char* a, Watch* w) { return a < w->data; });
  if (at == watches.begin()) return nullptr;
  Watch* w = *(at - 1);
  if (p >= w->data + w->size) return nullptr;
  return last = w;
}

void touch(int kind, void* address, size_t size) {
  char* p = (char*)address;
  Watch* w = watches.empty() ? nullptr : find(p);
  if (!w) return;
  w->counts[kind].distinct += w->touch(kind, size_t(p - w->data), size);
  const uint64_t simd = msl::host::simdgroup_index_in_threadgroup().x, unit = uint64_t(p) / size;
  const uint64_t key = ((unit / 64 << 5 | simd) << 4) | uint64_t(std::bit_width(size)) << 1 | uint64_t(kind);
  Turns& t = pages.find(key)->at[unit % 64];
  uint8_t& own = t.by_lane[msl_rt_lane()];
  if (own < 255) own++;  // beyond, each turn counts for itself
  else t.most = 254;
  if (own <= t.most) return;
  t.most = own;
  w->counts[kind].total += size;
}

}  // namespace

// A threadgroup has ended: the next one's simdgroups share nothing with its own.
void msl::host::end_threadgroup() {
  pages.clear();
}

extern "C" void msl_trace_watch(void* data, size_t size) {
  Watch* w = new Watch{(char*)data, size, {}, {}};
  for (auto& t : w->touched) t.resize(size / kGrain / 64 + 1);
  watches.insert(std::upper_bound(watches.begin(), watches.end(), w, [](Watch* a, Watch* b) { return a->data < b->data; }), w);
}

// out: bytes loaded, distinct and total, then bytes stored.
extern "C" void msl_trace_counts(void* data, uint64_t* out) {
  memset(out, 0, 4 * sizeof *out);
  for (Watch* w : watches)
    if (w->data == data)
      for (int kind = 0; kind < 2; kind++) {
        out[2 * kind] = w->counts[kind].distinct;
        out[2 * kind + 1] = w->counts[kind].total;
      }
}

extern "C" void msl_trace_forget(void) {
  for (Watch* w : watches) delete w;
  watches.clear();
  last = nullptr;
}

// Floating-point operations of kernels so far: what irflops adds to.
extern "C" {
uint64_t msl_flops;
uint64_t msl_trace_flops(void) { return msl_flops; }
}

// What clang calls.
extern "C" {
void __sanitizer_cov_trace_pc_guard(uint32_t*) {}
void __sanitizer_cov_trace_pc_guard_init(uint32_t*, uint32_t*) {}
#define MSL_TOUCH(size)                                                    \
  void __sanitizer_cov_load##size(void* p) { touch(0, p, size); }          \
  void __sanitizer_cov_store##size(void* p) { touch(1, p, size); }
MSL_TOUCH(1) MSL_TOUCH(2) MSL_TOUCH(4) MSL_TOUCH(8) MSL_TOUCH(16)
}
