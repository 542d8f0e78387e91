// A program that runs lists from its standard input, for builds with sanitizers:
// a Go program cannot host them. runner.go writes the requests.
#include "rt.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

bool read_exact(void* p, size_t n) { return fread(p, 1, n, stdin) == n; }

template <class T> T get() {
  T v;
  if (!read_exact(&v, sizeof v)) exit(3);  // the request is cut short
  return v;
}

std::string get_block() {
  std::string s(get<uint64_t>(), '\0');
  if (!read_exact(s.data(), s.size())) exit(3);
  return s;
}

void put(const void* p, size_t n) { fwrite(p, 1, n, stdout); }

// Bytes of arguments get a block of exactly their size, so that a read beyond
// them is seen.
struct Blocks {
  std::vector<void*> all;
  void* add(const std::string& s) {
    void* p = malloc(s.size());
    memcpy(p, s.data(), s.size());
    all.push_back(p);
    return p;
  }
  ~Blocks() { for (void* p : all) free(p); }
};

struct Buffer { char* data; uint64_t size; };

msl_launch get_launch(const std::vector<Buffer>& buffers, Blocks& blocks) {
  msl_launch l{};
  const std::string name = get_block();
  l.index = uint32_t(msl_kernel_find(name.c_str()));
  l.barrier = get<uint32_t>();
  for (auto& v : l.groups) v = get<uint32_t>();
  for (auto& v : l.threads) v = get<uint32_t>();
  l.shared = get<uint32_t>();
  for (auto& v : l.constants) v = get<uint32_t>();
  for (uint32_t n = get<uint32_t>(); n > 0; n--) {
    const uint32_t slot = get<uint32_t>(), index = get<uint32_t>();
    if (index == ~0u) {
      const std::string bytes = get_block();
      l.buf[slot] = blocks.add(bytes);
      l.len[slot] = bytes.size();
    } else {
      const uint64_t offset = get<uint64_t>();
      l.buf[slot] = buffers[index].data + offset;
      l.len[slot] = buffers[index].size - offset;
    }
  }
  return l;
}

// answer runs one list. A sanitizer ends the program at its first finding; the
// launch that was under way is the last one named on standard error.
void answer(msl_run& run, const std::vector<msl_launch>& list) {
  for (uint32_t from = 0, to; from < list.size(); from = to) {
    // Launches without a barrier between them go together: their order is free.
    for (to = from + 1; to < list.size() && !list[to].barrier;) to++;
    fprintf(stderr, "launch %u\n", from);
    if (msl_run_list(&list[from], to - from, &run)) {
      run.failed += from;
      return;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && !strcmp(argv[1], "--kernels")) {
    for (uint32_t i = 0; i < msl_kernel_count(); i++) {
      printf("%s", msl_kernel_name(i));
      for (uint32_t c = 0; c < MSL_MAX_CONSTANTS; c++) printf(" %s", msl_kernel_constant(i, c));
      printf("\n");
    }
    return 0;
  }
  msl_run run{};
  while (read_exact(&run.order, sizeof run.order)) {
    run.workers = get<uint32_t>();
    std::vector<Buffer> buffers(get<uint32_t>());
    const uint32_t launches = get<uint32_t>();
    for (Buffer& b : buffers) {
      b.size = get<uint64_t>();
      b.data = (char*)msl_alloc(b.size);
      if (!read_exact(b.data, b.size)) return 3;
    }
    Blocks blocks;
    std::vector<msl_launch> list;
    for (uint32_t i = 0; i < launches; i++) list.push_back(get_launch(buffers, blocks));
    answer(run, list);
    const uint32_t head[3] = {run.error[0] != 0, run.failed, uint32_t(strlen(run.error))};
    put(head, sizeof head);
    put(run.error, head[2]);
    for (Buffer& b : buffers) {
      put(b.data, b.size);
      msl_free(b.data);
    }
    fflush(stdout);
  }
  return 0;
}
