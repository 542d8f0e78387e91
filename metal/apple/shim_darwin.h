// Metal, call by call, as plain C: what package apple needs of it and no more.
// Policy is Go's; here is no choice but of what a newer system has.
//
// Objects are known to Go by handles: numbers in a table, 0 for none. A handle
// that was released, or is of another kind, is refused and never followed. Every
// function may be called from any thread, runs in an autorelease pool of its own
// and calls nothing of Go.
#pragma once
#include <stdint.h>

// Twins of the Go types of the same names; a test compares their layouts.

typedef struct {
  uint64_t device;     // the object itself, for readers of its properties
  uint32_t family;     // the newest of Apple's families that it has: 7 is Apple7
  uint32_t unified;    // memory is the processor's too
  uint32_t residency;  // there are residency sets
  uint32_t metal4;     // the system has Metal 4
} calla_facts;

typedef struct {
  int64_t code;
  char *text;  // NULL where nothing failed; to be freed
} calla_error;

typedef struct {
  uint64_t library;
  uint64_t archive;         // where it is looked for; 0 for none
  uint32_t constants[4];    // function constants of the same index
  uint32_t archived_only;   // fail where the archive does not have it
  uint32_t add;             // put it in the archive
  uint32_t most_threads;    // out: of a threadgroup
  uint32_t simd_width;      // out
  uint32_t threadgroup_memory;  // out: static bytes
  uint32_t reserved;
} calla_pipeline_spec;

enum {
  CALLA_BARRIER = 1,  // waits for all dispatches before it in its encoder
  CALLA_COMMAND = 2,  // the first of a command buffer
  CALLA_ENCODER = 4,  // the first of an encoder
  CALLA_WAIT = 8,     // its encoder waits for the fence first
  CALLA_UPDATE = 16,  // the last of its encoder, which updates the fence
};

typedef struct {
  uint64_t pipeline;
  uint32_t flags;
  uint32_t binding;   // its first in the list of bindings, at buffer 1
  uint32_t bindings;
  uint32_t args;      // where its argument struct lies, at buffer 0
  uint32_t args_bytes;
  uint32_t groups[3];
  uint32_t threads;   // of a threadgroup
  uint32_t shared;    // bytes of threadgroup memory
  uint32_t label;     // of the encoder that it begins
  uint32_t reserved;
} calla_record;

typedef struct {
  uint64_t buffer;
  uint64_t offset;
} calla_binding;

typedef struct {
  uint64_t from;  // a buffer, or 0 for zeros
  uint64_t from_offset;
  uint64_t to;
  uint64_t to_offset;
  uint64_t bytes;  // a multiple of 4, as the offsets
} calla_move;

typedef struct {
  uint32_t state;    // 0 under way, 1 done, 2 failed
  int32_t encoder;   // the one at fault, counted in its command buffer; -1 unknown
  double begun;      // seconds of the GPU's clock
  double ended;
} calla_result;

uint64_t calla_device(calla_facts *facts, calla_error *error);
uint64_t calla_queue(uint64_t device, uint64_t most);
uint64_t calla_fence(uint64_t device);

uint64_t calla_compile(uint64_t device, const char *source, uint32_t language, calla_error *error);
uint64_t calla_load(uint64_t device, const char *path, calla_error *error);
char *calla_functions(uint64_t library);  // one a line; to be freed

uint64_t calla_archive(uint64_t device, const char *path, calla_error *error);  // "": a new one
int calla_save(uint64_t archive, const char *path, calla_error *error);
uint64_t calla_pipeline(uint64_t device, const char *function, calla_pipeline_spec *spec, calla_error *error);

// Contents is where the processor sees the buffer: NULL where it does not.
uint64_t calla_buffer(uint64_t device, const char *label, uint64_t bytes, int host, void **contents);

uint64_t calla_residency(uint64_t device, uint64_t queue, calla_error *error);
void calla_reside(uint64_t set, uint64_t buffer, int add);
void calla_wire(uint64_t set, int wired);

// Encodes records and commits their command buffers, whose handles it writes to
// commands. Returns how many were committed: all, or fewer with an error.
uint64_t calla_submit(uint64_t queue, uint64_t fence, const calla_record *records, uint64_t count,
                      const calla_binding *bindings, const void *args, const char *labels,
                      uint64_t *commands, calla_error *error);
// Commits a command buffer that copies from buffer to buffer, in an encoder that
// waits for the fence where ordered says so, and updates it.
uint64_t calla_transfer(uint64_t queue, uint64_t fence, int ordered, const calla_move *moves, uint64_t count,
                        calla_error *error);
// Waits until a command buffer is done or the time is over.
void calla_wait(uint64_t command, uint64_t nanoseconds, calla_result *result, calla_error *error);

void calla_release(uint64_t handle);
uint64_t calla_live(void);  // handles that were not released
