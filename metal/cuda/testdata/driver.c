// A stand-in for NVIDIA's driver: memory is the process's own, the queue runs at
// once, and every kernel writes down what it was launched with. A kernel's first
// pointer says where: the call's numbers, then the argument struct's words.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int S;
enum { OUT_OF_MEMORY = 2, INVALID_PTX = 218, NOT_FOUND = 500, FAULT = 700 };
static S sticky;  // what a kernel did wrong
static _Thread_local void* current;
static int context, stream, event, graph;
static char function[256];

S cuInit(unsigned flags) { return flags; }
S cuGetErrorName(S s, const char** name) {
  *name = s == FAULT ? "CUDA_ERROR_ILLEGAL_ADDRESS" : s == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OTHER";
  return 0;
}
S cuDeviceGet(int* d, int n) { return *d = 7, n; }
S cuDeviceGetName(char* name, int n, int d) { return snprintf(name, n, "stand-in %d", d), 0; }
S cuDeviceGetAttribute(int* v, int a, int d) { return *v = a == 75 ? 9 : a == 76 ? 0 : a == 16 ? 132 : -1, d != 7; }
S cuDevicePrimaryCtxRetain(void** c, int d) { return *c = &context, d != 7; }
S cuDevicePrimaryCtxRelease_v2(int d) { return d != 7; }
S cuCtxSetCurrent(void* c) { return current = c, c != &context; }
#define CURRENT if (current != &context) return 201; if (sticky) return sticky
S cuMemGetInfo_v2(uint64_t* f, uint64_t* t) { CURRENT; return *f = 3ull << 30, *t = 4ull << 30, 0; }
S cuMemAlloc_v2(void** p, uint64_t n) { CURRENT; return n > 1ull << 32 ? OUT_OF_MEMORY : !(*p = malloc(n)); }
S cuMemFree_v2(void* p) { CURRENT; return free(p), 0; }
S cuMemHostAlloc(void** p, uint64_t n, unsigned flags) { CURRENT; return flags == 2 ? !(*p = aligned_alloc(4096, (n + 4095) & ~4095ull)) : 1; }
S cuMemHostGetDevicePointer_v2(void** p, void* host, unsigned flags) { CURRENT; return *p = host, flags; }
S cuMemFreeHost(void* p) { CURRENT; return free(p), 0; }
S cuMemcpyHtoD_v2(void* to, const void* from, uint64_t n) { CURRENT; return memcpy(to, from, n), 0; }
S cuMemcpyDtoH_v2(void* to, const void* from, uint64_t n) { CURRENT; return memcpy(to, from, n), 0; }
S cuMemcpyDtoDAsync_v2(void* to, const void* from, uint64_t n, void* s) { CURRENT; return memcpy(to, from, n), s != &stream; }
S cuMemsetD8Async(void* to, unsigned char v, uint64_t n, void* s) { CURRENT; return memset(to, v, n), s != &stream; }
S cuModuleLoadDataEx(void** m, const char* image, unsigned n, const int* options, void** values) {
  CURRENT;
  if (n != 3 || options[0] != 5 || options[1] != 6 || options[2] != 12) return 1;
  if (strstr(image, "nonsense")) return snprintf(values[0], (size_t)values[1], "line 3: nonsense"), INVALID_PTX;
  return *m = strdup(image), 0;
}
S cuModuleUnload(void* m) { CURRENT; return free(m), 0; }
S cuModuleGetFunction(void** f, void* m, const char* name) {
  CURRENT;
  return strstr(m, name) ? (*f = function, snprintf(function, sizeof function, "%s", name), 0) : NOT_FOUND;
}
S cuFuncGetAttribute(int* v, int a, void* f) { return *v = a == 4 ? 40 : 0, f != function; }
S cuEventCreate(void** e, unsigned flags) { CURRENT; return *e = &event, flags != 1; }
S cuEventRecord(void* e, void* s) { CURRENT; return e != &event || s != &stream; }
S cuEventSynchronize(void* e) { CURRENT; return e != &event; }
S cuEventElapsedTime(float* ms, void* a, void* b) { return *ms = 1.5f, a != &event || b != &event; }
S cuEventDestroy_v2(void* e) { return e != &event; }
S cuStreamCreate(void** s, unsigned flags) { return *s = &stream, flags; }
S cuStreamDestroy_v2(void* s) { return s != &stream; }
S cuStreamBeginCapture_v2(void* s, int mode) { CURRENT; return s != &stream || mode != 2; }
S cuStreamEndCapture(void* s, void** g) { CURRENT; return *g = &graph, s != &stream; }
S cuGraphInstantiateWithFlags(void** x, void* g, unsigned long long flags) { return *x = &graph, g != &graph || flags; }
S cuGraphLaunch(void* x, void* s) { CURRENT; return x != &graph || s != &stream; }
S cuGraphExecDestroy(void* x) { return x != &graph; }
S cuGraphDestroy(void* g) { return g != &graph; }

S cuLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                 void* s, void** params, void** extra) {
  CURRENT;
  if (f != function || s != &stream || extra) return 1;
  if (strstr(f, "faulty")) return sticky = FAULT, 0;
  uint32_t* out = *(uint32_t**)params[1];
  const uint32_t call[] = {gx, gy, gz, bx, by, bz, shared};
  memcpy(out, call, sizeof call);
  memcpy(out + 7, params[0], 12);
  return 0;
}
