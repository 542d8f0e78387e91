// The host side of the library: kernels by name, memory for buffers, and lists
// of dispatches.
#include "fibre.h"

#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

msl::host::KernelInfo* registered;

const std::vector<const msl::host::KernelInfo*>& kernels() {
  static const std::vector<const msl::host::KernelInfo*> all = [] {
    std::vector<const msl::host::KernelInfo*> v;
    for (auto* k = registered; k; k = k->next) v.push_back(k);
    return v;
  }();
  return all;
}

// ---- memory -----------------------------------------------------------------
// A buffer starts as 0xFF bytes, NaN in every float format, so that unwritten
// output shows. Under ASan it is an exact block with a redzone behind it;
// elsewhere a fence of known bytes lies at either end.
constexpr size_t kFence = 256;
std::mutex memory_lock;
std::map<char*, size_t> blocks;  // by first byte behind the lower fence

unsigned char fence_byte(size_t i) { return (unsigned char)(0xA5 ^ i); }

void fence(char* p) {
  for (size_t i = 0; i < kFence; i++) p[i] = char(fence_byte(i));
}

bool whole(const char* p) {
  for (size_t i = 0; i < kFence; i++)
    if ((unsigned char)p[i] != fence_byte(i)) return false;
  return true;
}

// check_fences looks at the buffers that a dispatch was given.
std::string check_fences(const msl_launch& l) {
  std::lock_guard<std::mutex> hold(memory_lock);
  for (int slot = 0; slot < MSL_MAX_BUFFERS; slot++) {
    char* p = (char*)l.buf[slot];
    auto at = blocks.upper_bound(p);
    if (!p || at == blocks.begin()) continue;
    --at;
    if (p > at->first + at->second) continue;  // not ours: bytes of arguments
    const char* side = !whole(at->first - kFence) ? "before the start" : !whole(at->first + at->second) ? "beyond the end" : nullptr;
    if (!side) continue;
    fence(at->first - kFence);
    fence(at->first + at->second);
    return std::string("wrote ") + side + " of the buffer at slot " + std::to_string(slot);
  }
  return "";
}

// ---- lists ------------------------------------------------------------------
std::string check(const msl_launch& l) {
  if (l.index >= kernels().size()) return "no such kernel";
  const auto* k = kernels()[l.index];
  const uint64_t threads = uint64_t(l.threads[0]) * l.threads[1] * l.threads[2];
  if (threads == 0 || threads > msl::host::kMaxThreads || threads % msl::host::kLanes)
    return std::to_string(threads) + " threads a threadgroup, want a multiple of 32, at most 1024";
  if (k->max_threads && threads > k->max_threads)
    return std::to_string(threads) + " threads a threadgroup, the kernel says at most " + std::to_string(k->max_threads);
  if (!l.groups[0] || !l.groups[1] || !l.groups[2]) return "an empty grid";
  if (l.shared > msl::host::kMaxShared || l.shared % 16)
    return std::to_string(l.shared) + " bytes of threadgroup memory, want a multiple of 16, at most 32768";
  for (int i = 0; i < MSL_MAX_BUFFERS; i++) {
    const bool wanted = k->buffers >> i & 1;
    const std::string slot = "buffer " + std::to_string(i);
    if (wanted && !l.buf[i]) return slot + " is not bound";
    if (!wanted && l.buf[i]) return slot + " is bound but no parameter";
    if (l.buf[i] && l.len[i] < k->min_bytes[i])
      return slot + " has " + std::to_string(l.len[i]) + " bytes, its struct has " + std::to_string(k->min_bytes[i]);
  }
  return "";
}

// order_of returns the order in which a list is run: that of the list, except
// that dispatches with no barrier between them may change places.
std::vector<uint32_t> order_of(const msl_launch* list, uint32_t n, uint32_t order) {
  std::vector<uint32_t> out(n);
  for (uint32_t i = 0; i < n; i++) out[i] = i;
  if (order == 0) return out;
  uint64_t rng = order * 0x9E3779B97F4A7C15ull + 1;
  for (uint32_t from = 0, to; from < n; from = to) {
    for (to = from + 1; to < n && !list[to].barrier;) to++;
    for (uint32_t left = to - from; left > 1; left--) {
      rng ^= rng << 13; rng ^= rng >> 7; rng ^= rng << 17;
      const uint32_t j = order == 1 ? 0 : uint32_t(rng >> 33) % left;
      const uint32_t v = out[from + j];
      for (uint32_t i = from + j; i + 1 < from + left; i++) out[i] = out[i + 1];
      out[from + left - 1] = v;
    }
  }
  return out;
}

// begin makes everything ready for a dispatch: no other is under way.
void begin(const msl_launch& l, bool barrier) {
  if (auto specialise = kernels()[l.index]->specialise) specialise(l.constants);
  msl::host::begin(barrier);
}

// Execution runs one list on several threads that meet after every dispatch.
struct Execution {
  const msl_launch* list;
  msl_run* run;
  std::vector<uint32_t> order;
  std::vector<std::atomic<uint64_t>> next;
  uint32_t at = 0;
  bool over = false;

  void after_each() noexcept {
    const uint32_t i = order[at];
    if (!run->error[0]) {
      const std::string fault = check_fences(list[i]);
      if (!fault.empty()) snprintf(run->error, sizeof run->error, "%s", fault.c_str());
    }
    if (run->error[0]) {
      run->failed = i;
      over = true;
    } else if (++at == order.size()) {
      over = true;
    } else {
      begin(list[order[at]], list[order[at]].barrier);
    }
  }
};

void execute(Execution& e, uint32_t workers) {
  auto meet = [&e]() noexcept { e.after_each(); };
  std::barrier<decltype(meet)> point(workers, meet);
  auto work = [&] {
    while (!e.over) {
      const uint32_t at = e.at;
      const msl_launch& l = e.list[e.order[at]];
      msl::host::run_threadgroups(&l, kernels()[l.index], e.run, &e.next[at]);
      point.arrive_and_wait();
    }
  };
  begin(e.list[e.order[0]], true);
  std::vector<std::thread> others;
  for (uint32_t i = 1; i < workers; i++) others.emplace_back(work);
  work();
  for (auto& t : others) t.join();
  msl::host::end();
}

}  // namespace

uint32_t msl_strict;

msl::host::KernelInfo::KernelInfo(const char* n, void (*e)(const msl_launch*), uint32_t m, uint32_t b)
    : name(n), entry(e), max_threads(m), buffers(b), next(registered) { registered = this; }

extern "C" uint32_t msl_kernel_count(void) { return uint32_t(kernels().size()); }

extern "C" const char* msl_kernel_name(uint32_t i) { return i < kernels().size() ? kernels()[i]->name : nullptr; }

extern "C" const char* msl_kernel_constant(uint32_t i, uint32_t index) {
  if (i >= kernels().size() || index >= MSL_MAX_CONSTANTS) return "";
  const char* name = kernels()[i]->constants[index];
  return name ? name : "";
}

extern "C" int msl_kernel_find(const char* name) {
  for (size_t i = 0; i < kernels().size(); i++)
    if (!strcmp(kernels()[i]->name, name)) return int(i);
  return -1;
}

extern "C" void* msl_alloc(size_t size) {
#if defined(MSL_ASAN)
  char* p = (char*)malloc(size);
  if (p) memset(p, 0xFF, size);
  return p;
#else
  constexpr size_t kPage = 16 << 10;
  const size_t rounded = (size + kPage - 1) / kPage * kPage;
  char* base = (char*)aligned_alloc(kPage, rounded + 2 * kPage);
  if (!base) return nullptr;
  char* p = base + kPage;
  memset(p, 0xFF, size);
  fence(p - kFence);
  fence(p + size);
  std::lock_guard<std::mutex> hold(memory_lock);
  blocks[p] = size;
  return p;
#endif
}

extern "C" void msl_free(void* memory) {
#if defined(MSL_ASAN)
  free(memory);
#else
  constexpr size_t kPage = 16 << 10;
  std::lock_guard<std::mutex> hold(memory_lock);
  blocks.erase((char*)memory);
  free((char*)memory - kPage);
#endif
}

extern "C" int msl_run_list(const msl_launch* list, uint32_t n, msl_run* run) {
  run->error[0] = 0;
  msl_strict = run->order;
  for (uint32_t i = 0; i < n; i++) {
    const std::string fault = check(list[i]);
    if (fault.empty()) continue;
    run->failed = i;
    snprintf(run->error, sizeof run->error, "%s", fault.c_str());
    return 1;
  }
  if (n == 0) return 0;
  Execution e{list, run, order_of(list, n, run->order), std::vector<std::atomic<uint64_t>>(n)};
  execute(e, run->workers ? run->workers : 1);
  return run->error[0] != 0;
}
