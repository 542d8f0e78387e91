// Counts what kernels read and write of each buffer. Linked into the library
// whose kernels clang made to report every load and store; other builds have
// none of it. One worker only.
//
// Distinct bytes are those touched at all. Total bytes count again what is read
// again: by another simdgroup, or by the same lane once more. Lanes of one
// simdgroup that read the same bytes share a read, as they do on a GPU.
#include "fibre.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "../shim/msl/args.h"

namespace {

constexpr size_t kGrain = 2;  // bytes that are counted together: the narrowest value

struct Count { uint64_t distinct, total; };

struct Watch {
  char* data;
  size_t size;
  std::vector<bool> touched[2];  // by grain: loads, stores
  Count counts[2];
};

std::vector<Watch*> watches;  // by address
Watch* last;

// How often the lanes of a simdgroup touched a grain.
struct Turns { uint16_t by_lane[32]; };
std::unordered_map<uint64_t, Turns> turns[2];

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
  const uint64_t simd = msl::host::simdgroup_index_in_threadgroup().x, lane = msl_rt_lane();
  for (size_t at = (p - w->data) / kGrain; at <= (p - w->data + size - 1) / kGrain; at++) {
    if (!w->touched[kind][at]) {
      w->touched[kind][at] = true;
      w->counts[kind].distinct += kGrain;
    }
    Turns& t = turns[kind][(uint64_t(w->data) + at * kGrain) << 5 | simd];
    const uint16_t most = *std::max_element(t.by_lane, t.by_lane + 32);
    if (++t.by_lane[lane] > most) w->counts[kind].total += kGrain;
  }
}

}  // namespace

// A threadgroup has ended: the next one's simdgroups share nothing with its own.
void msl::host::end_threadgroup() {
  for (auto& t : turns) t.clear();
}

extern "C" void msl_trace_watch(void* data, size_t size) {
  Watch* w = new Watch{(char*)data, size, {}, {}};
  for (auto& t : w->touched) t.resize((size + kGrain - 1) / kGrain);
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

// What clang calls.
extern "C" {
void __sanitizer_cov_trace_pc_guard(uint32_t*) {}
void __sanitizer_cov_trace_pc_guard_init(uint32_t*, uint32_t*) {}
#define MSL_TOUCH(size)                                                    \
  void __sanitizer_cov_load##size(void* p) { touch(0, p, size); }          \
  void __sanitizer_cov_store##size(void* p) { touch(1, p, size); }
MSL_TOUCH(1) MSL_TOUCH(2) MSL_TOUCH(4) MSL_TOUCH(8) MSL_TOUCH(16)
}
