//go:build cgo

#import <Foundation/Foundation.h>
#import <Metal/Metal.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "shim_darwin.h"

#pragma clang diagnostic ignored "-Wdeprecated-declarations"  // fastMathEnabled

// What came with macOS 15, by the selectors alone: SDKs before it do not have the
// types. All of it is asked for before it is used.
@protocol CallaNewer <NSObject>
- (void)setMathMode:(NSInteger)mode;  // of MTLCompileOptions
- (id)newResidencySetWithDescriptor:(id)descriptor error:(NSError **)error;  // of MTLDevice
- (void)addResidencySet:(id)set;  // of MTLCommandQueue
- (void)addAllocation:(id)allocation;  // of MTLResidencySet, and the rest
- (void)removeAllocation:(id)allocation;
- (void)commit;
- (void)requestResidency;
- (void)endResidency;
@end

enum { MathModeSafe = 0 };

// --- handles ---

typedef enum {
  KindFree,
  KindDevice,
  KindQueue,
  KindFence,
  KindLibrary,
  KindArchive,
  KindPipeline,
  KindBuffer,
  KindResidency,
  KindCommand,
} Kind;

// A slot holds one object. Its generation tells a handle from those that were
// released before it.
typedef struct {
  uint32_t generation;
  Kind kind;
  void *object;
  uint32_t next;  // free slot, counted from 1
} Slot;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Slot *slots;
static uint32_t count, room, vacant;
static uint64_t live;

static uint64_t put(id object, Kind kind) {
  if (!object) return 0;
  pthread_mutex_lock(&lock);
  uint32_t index = vacant;
  if (index) {
    vacant = slots[index - 1].next;
  } else {
    if (count == room) {
      const uint32_t more = room ? 2 * room : 256;
      Slot *grown = realloc(slots, more * sizeof(Slot));
      if (!grown) abort();
      slots = grown;
      room = more;
    }
    slots[count] = (Slot){0};
    index = ++count;
  }
  Slot *s = &slots[index - 1];
  s->kind = kind;
  s->object = (__bridge_retained void *)object;
  live++;
  const uint64_t handle = (uint64_t)s->generation << 32 | index;
  pthread_mutex_unlock(&lock);
  return handle;
}

// The object of a handle, or NULL. The caller holds the lock.
static void *held(uint64_t handle, Kind kind) {
  const uint32_t index = (uint32_t)handle;
  if (index == 0 || index > count) return NULL;
  Slot *s = &slots[index - 1];
  if (s->kind != kind || s->generation != handle >> 32) return NULL;
  return s->object;
}

static id get(uint64_t handle, Kind kind) {
  pthread_mutex_lock(&lock);
  id object = (__bridge id)held(handle, kind);
  pthread_mutex_unlock(&lock);
  return object;
}

static id<MTLDevice> deviceOf(uint64_t handle) { return get(handle, KindDevice); }

void calla_release(uint64_t handle) {
  @autoreleasepool {
    void *object = NULL;
    pthread_mutex_lock(&lock);
    const uint32_t index = (uint32_t)handle;
    if (index != 0 && index <= count) {
      Slot *s = &slots[index - 1];
      if (s->kind != KindFree && s->generation == handle >> 32) {
        object = s->object;
        s->object = NULL;
        s->kind = KindFree;
        s->generation++;
        s->next = vacant;
        vacant = index;
        live--;
      }
    }
    pthread_mutex_unlock(&lock);
    // Behind the lock: what goes with an object may take long.
    if (object) (void)(__bridge_transfer id)object;
  }
}

uint64_t calla_live(void) {
  pthread_mutex_lock(&lock);
  const uint64_t n = live;
  pthread_mutex_unlock(&lock);
  return n;
}

// --- errors ---

static char *copied(NSString *s) {
  const char *text = s.UTF8String;
  return strdup(text ? text : "");
}

static void fail(calla_error *error, NSError *from, const char *otherwise) {
  if (!error || error->text) return;
  error->code = from.code;
  error->text = from ? copied(from.localizedDescription) : strdup(otherwise);
}

static const char stale[] = "a handle that was released, or is of another kind";

// --- the device ---

uint64_t calla_device(calla_facts *facts, calla_error *error) {
  @autoreleasepool {
    id<MTLDevice> device = MTLCreateSystemDefaultDevice();
    if (!device) {
      // A process without a window server may have no default device.
      NSArray<id<MTLDevice>> *all = MTLCopyAllDevices();
      if (all.count > 0) device = [all objectAtIndex:0];
    }
    if (!device) {
      fail(error, nil, "the system has no Metal device");
      return 0;
    }
    *facts = (calla_facts){.device = (uint64_t)(__bridge void *)device};
    for (uint32_t family = 1; family < 32; family++) {
      if ([device supportsFamily:(MTLGPUFamily)(1000 + family)]) facts->family = family;
    }
    facts->unified = device.hasUnifiedMemory;
    facts->residency = [device respondsToSelector:@selector(newResidencySetWithDescriptor:error:)] &&
                       NSClassFromString(@"MTLResidencySetDescriptor") != Nil;
    facts->metal4 = [device respondsToSelector:@selector(newMTL4CommandQueue)];
    return put(device, KindDevice);
  }
}

uint64_t calla_queue(uint64_t device, uint64_t most) {
  @autoreleasepool {
    return put([deviceOf(device) newCommandQueueWithMaxCommandBufferCount:most], KindQueue);
  }
}

uint64_t calla_fence(uint64_t device) {
  @autoreleasepool {
    return put([deviceOf(device) newFence], KindFence);
  }
}

// --- libraries and pipelines ---

uint64_t calla_compile(uint64_t device, const char *source, uint32_t language, calla_error *error) {
  @autoreleasepool {
    MTLCompileOptions *options = [[MTLCompileOptions alloc] init];
    options.languageVersion = language;
    if ([options respondsToSelector:@selector(setMathMode:)]) {
      [(id<CallaNewer>)options setMathMode:MathModeSafe];
    } else {
      options.fastMathEnabled = NO;
    }
    NSError *e = nil;
    id<MTLLibrary> library = [deviceOf(device) newLibraryWithSource:[NSString stringWithUTF8String:source]
                                                               options:options
                                                                 error:&e];
    // An error beside a library is a warning.
    if (!library) fail(error, e, "the compiler gave neither a library nor an error");
    return put(library, KindLibrary);
  }
}

static NSURL *file(const char *path) { return [NSURL fileURLWithPath:[NSString stringWithUTF8String:path]]; }

uint64_t calla_load(uint64_t device, const char *path, calla_error *error) {
  @autoreleasepool {
    NSError *e = nil;
    id<MTLLibrary> library = [deviceOf(device) newLibraryWithURL:file(path) error:&e];
    if (!library) fail(error, e, "no library in the file");
    return put(library, KindLibrary);
  }
}

char *calla_functions(uint64_t library) {
  @autoreleasepool {
    id<MTLLibrary> l = get(library, KindLibrary);
    return copied([l.functionNames componentsJoinedByString:@"\n"]);
  }
}

uint64_t calla_archive(uint64_t device, const char *path, calla_error *error) {
  @autoreleasepool {
    MTLBinaryArchiveDescriptor *d = [[MTLBinaryArchiveDescriptor alloc] init];
    if (path[0]) d.url = file(path);
    NSError *e = nil;
    id<MTLBinaryArchive> archive = [deviceOf(device) newBinaryArchiveWithDescriptor:d error:&e];
    if (!archive) fail(error, e, "no archive");
    return put(archive, KindArchive);
  }
}

int calla_save(uint64_t archive, const char *path, calla_error *error) {
  @autoreleasepool {
    NSError *e = nil;
    id<MTLBinaryArchive> a = get(archive, KindArchive);
    if ([a serializeToURL:file(path) error:&e]) return 1;
    fail(error, e, "the archive was not written");
    return 0;
  }
}

static id<MTLFunction> specialised(const char *name, const calla_pipeline_spec *spec, NSError **e) {
  MTLFunctionConstantValues *values = [[MTLFunctionConstantValues alloc] init];
  for (NSUInteger i = 0; i < 4; i++) [values setConstantValue:&spec->constants[i] type:MTLDataTypeUInt atIndex:i];
  id<MTLLibrary> library = get(spec->library, KindLibrary);
  return [library newFunctionWithName:[NSString stringWithUTF8String:name] constantValues:values error:e];
}

uint64_t calla_pipeline(uint64_t device, const char *function, calla_pipeline_spec *spec, calla_error *error) {
  @autoreleasepool {
    NSError *e = nil;
    MTLComputePipelineDescriptor *d = [[MTLComputePipelineDescriptor alloc] init];
    d.computeFunction = specialised(function, spec, &e);
    if (!d.computeFunction) {
      fail(error, e, "the library has no such function");
      return 0;
    }
    d.label = [NSString stringWithUTF8String:function];
    d.threadGroupSizeIsMultipleOfThreadExecutionWidth = YES;
    id<MTLBinaryArchive> archive = spec->archive ? get(spec->archive, KindArchive) : nil;
    if (archive) {
      d.binaryArchives = @[ archive ];
      if (spec->add && ![archive addComputePipelineFunctionsWithDescriptor:d error:&e]) {
        fail(error, e, "the archive does not take the function");
        return 0;
      }
    }
    const MTLPipelineOption option =
        archive && spec->archived_only ? MTLPipelineOptionFailOnBinaryArchiveMiss : MTLPipelineOptionNone;
    id<MTLComputePipelineState> p = [deviceOf(device) newComputePipelineStateWithDescriptor:d
                                                                                       options:option
                                                                                    reflection:NULL
                                                                                         error:&e];
    if (!p) {
      fail(error, e, "no pipeline");
      return 0;
    }
    spec->most_threads = (uint32_t)p.maxTotalThreadsPerThreadgroup;
    spec->simd_width = (uint32_t)p.threadExecutionWidth;
    spec->threadgroup_memory = (uint32_t)p.staticThreadgroupMemoryLength;
    return put(p, KindPipeline);
  }
}

// --- memory ---

uint64_t calla_buffer(uint64_t device, const char *label, uint64_t bytes, int host, void **contents) {
  @autoreleasepool {
    const MTLResourceOptions storage = host ? MTLResourceStorageModeShared : MTLResourceStorageModePrivate;
    id<MTLBuffer> b = [deviceOf(device) newBufferWithLength:bytes
                                                       options:storage | MTLResourceHazardTrackingModeUntracked];
    b.label = [NSString stringWithUTF8String:label];
    *contents = host ? b.contents : NULL;
    return put(b, KindBuffer);
  }
}

uint64_t calla_residency(uint64_t device, uint64_t queue, calla_error *error) {
  @autoreleasepool {
    id d = [[NSClassFromString(@"MTLResidencySetDescriptor") alloc] init];
    NSError *e = nil;
    id set = [(id<CallaNewer>)deviceOf(device) newResidencySetWithDescriptor:d error:&e];
    if (!set) {
      fail(error, e, "no residency set");
      return 0;
    }
    [(id<CallaNewer>)get(queue, KindQueue) addResidencySet:set];
    return put(set, KindResidency);
  }
}

void calla_reside(uint64_t set, uint64_t buffer, int add) {
  @autoreleasepool {
    id<CallaNewer> s = get(set, KindResidency);
    id<MTLBuffer> b = get(buffer, KindBuffer);
    if (!b) return;
    if (add) {
      [s addAllocation:b];
    } else {
      [s removeAllocation:b];
    }
    [s commit];
  }
}

void calla_wire(uint64_t set, int wired) {
  @autoreleasepool {
    id<CallaNewer> s = get(set, KindResidency);
    if (wired) {
      [s requestResidency];
    } else {
      [s endResidency];
    }
  }
}

// --- running ---

// A committed command buffer and how it ended.
@interface CallaCommand : NSObject {
@public
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  calla_result result;
  int64_t code;
  NSString *text;
}
@end

@implementation CallaCommand
- (instancetype)init {
  self = [super init];
  if (self) {
    pthread_mutex_init(&mutex, NULL);
    pthread_cond_init(&changed, NULL);
    result.encoder = -1;
  }
  return self;
}

- (void)dealloc {
  pthread_cond_destroy(&changed);
  pthread_mutex_destroy(&mutex);
}

// The encoder at fault: of those affected the first, where none is said to be.
static int32_t fault(NSError *error) {
  NSArray<id<MTLCommandBufferEncoderInfo>> *encoders = error.userInfo[MTLCommandBufferEncoderInfoErrorKey];
  int32_t affected = -1;
  for (NSUInteger i = 0; i < encoders.count; i++) {
    const MTLCommandEncoderErrorState state = [encoders objectAtIndex:i].errorState;
    if (state == MTLCommandEncoderErrorStateFaulted) return (int32_t)i;
    if (state == MTLCommandEncoderErrorStateAffected && affected < 0) affected = (int32_t)i;
  }
  return affected;
}

- (void)end:(id<MTLCommandBuffer>)buffer {
  const BOOL ok = buffer.status == MTLCommandBufferStatusCompleted;
  NSError *e = buffer.error;
  pthread_mutex_lock(&mutex);
  result.begun = buffer.GPUStartTime;
  result.ended = buffer.GPUEndTime;
  if (!ok) {
    result.encoder = fault(e);
    code = e.code;
    text = e ? e.localizedDescription : @"the command buffer failed without an error";
  }
  result.state = ok ? 1 : 2;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
}
@end

static id<MTLCommandBuffer> begin(id<MTLCommandQueue> queue) {
  MTLCommandBufferDescriptor *d = [[MTLCommandBufferDescriptor alloc] init];
  d.retainedReferences = NO;  // Go keeps what is in use
  d.errorOptions = MTLCommandBufferErrorOptionEncoderExecutionStatus;
  return [queue commandBufferWithDescriptor:d];
}

static void commit(id<MTLCommandBuffer> buffer, uint64_t *command) {
  CallaCommand *c = [[CallaCommand alloc] init];
  [buffer addCompletedHandler:^(id<MTLCommandBuffer> b) {
    [c end:b];
  }];
  // The caller holds the lock, which put takes.
  pthread_mutex_unlock(&lock);
  *command = put(c, KindCommand);
  [buffer commit];
  pthread_mutex_lock(&lock);
}

// Encodes one dispatch. The caller holds the lock.
static BOOL encode(id<MTLComputeCommandEncoder> encoder, const calla_record *r, const calla_binding *bindings,
                   const char *args) {
  __unsafe_unretained id<MTLComputePipelineState> pipeline = (__bridge id)held(r->pipeline, KindPipeline);
  if (!pipeline) return NO;
  if (r->flags & CALLA_BARRIER) [encoder memoryBarrierWithScope:MTLBarrierScopeBuffers];
  [encoder setComputePipelineState:pipeline];
  if (r->args_bytes) [encoder setBytes:args + r->args length:r->args_bytes atIndex:0];
  for (uint32_t i = 0; i < r->bindings; i++) {
    const calla_binding *b = &bindings[r->binding + i];
    __unsafe_unretained id<MTLBuffer> buffer = (__bridge id)held(b->buffer, KindBuffer);
    if (!buffer) return NO;
    [encoder setBuffer:buffer offset:b->offset atIndex:i + 1];
  }
  if (r->shared) [encoder setThreadgroupMemoryLength:r->shared atIndex:0];
  [encoder dispatchThreadgroups:MTLSizeMake(r->groups[0], r->groups[1], r->groups[2])
          threadsPerThreadgroup:MTLSizeMake(r->threads, 1, 1)];
  return YES;
}

uint64_t calla_submit(uint64_t queue, uint64_t fence, const calla_record *records, uint64_t n,
                      const calla_binding *bindings, const void *args, const char *labels, uint64_t *commands,
                      calla_error *error) {
  @autoreleasepool {
    id<MTLCommandQueue> q = get(queue, KindQueue);
    id<MTLFence> f = get(fence, KindFence);
    if (!q || !f) {
      fail(error, nil, stale);
      return 0;
    }
    uint64_t committed = 0;
    id<MTLCommandBuffer> buffer = nil;
    id<MTLComputeCommandEncoder> encoder = nil;
    pthread_mutex_lock(&lock);
    for (uint64_t i = 0; i < n; i++) {
      const calla_record *r = &records[i];
      if (r->flags & CALLA_COMMAND) {
        if (buffer) commit(buffer, &commands[committed++]);
        buffer = begin(q);
      }
      if (r->flags & CALLA_ENCODER) {
        encoder = [buffer computeCommandEncoderWithDispatchType:MTLDispatchTypeConcurrent];
        encoder.label = [NSString stringWithUTF8String:labels + r->label];
        if (r->flags & CALLA_WAIT) [encoder waitForFence:f];
      }
      if (!encoder || !encode(encoder, r, bindings, args)) {
        fail(error, nil, encoder ? stale : "no command buffer");
        [encoder endEncoding];
        buffer = nil;  // not committed
        break;
      }
      if (i + 1 == n || records[i + 1].flags & CALLA_ENCODER) {
        if (r->flags & CALLA_UPDATE) [encoder updateFence:f];
        [encoder endEncoding];
        encoder = nil;
      }
    }
    if (buffer) commit(buffer, &commands[committed++]);
    pthread_mutex_unlock(&lock);
    return committed;
  }
}

static BOOL transfer(id<MTLBlitCommandEncoder> encoder, const calla_move *m) {
  id<MTLBuffer> to = get(m->to, KindBuffer), from = m->from ? get(m->from, KindBuffer) : nil;
  if (!to || (m->from && !from)) return NO;
  if (from) {
    [encoder copyFromBuffer:from sourceOffset:m->from_offset toBuffer:to destinationOffset:m->to_offset size:m->bytes];
  } else {
    [encoder fillBuffer:to range:NSMakeRange(m->to_offset, m->bytes) value:0];
  }
  return YES;
}

uint64_t calla_transfer(uint64_t queue, uint64_t fence, int ordered, const calla_move *moves, uint64_t n,
                        calla_error *error) {
  @autoreleasepool {
    id<MTLCommandQueue> q = get(queue, KindQueue);
    id<MTLFence> f = get(fence, KindFence);
    id<MTLCommandBuffer> buffer = q && f ? begin(q) : nil;
    id<MTLBlitCommandEncoder> encoder = [buffer blitCommandEncoder];
    if (!encoder) {
      fail(error, nil, buffer ? "no encoder" : stale);
      return 0;
    }
    encoder.label = @"transfer";
    if (ordered) [encoder waitForFence:f];
    BOOL ok = YES;
    for (uint64_t i = 0; ok && i < n; i++) ok = transfer(encoder, &moves[i]);
    [encoder updateFence:f];
    [encoder endEncoding];
    if (!ok) {
      fail(error, nil, stale);
      return 0;
    }
    uint64_t command = 0;
    pthread_mutex_lock(&lock);
    commit(buffer, &command);
    pthread_mutex_unlock(&lock);
    return command;
  }
}

void calla_wait(uint64_t command, uint64_t nanoseconds, calla_result *result, calla_error *error) {
  @autoreleasepool {
    CallaCommand *c = get(command, KindCommand);
    if (!c) {
      *result = (calla_result){.state = 2, .encoder = -1};
      fail(error, nil, stale);
      return;
    }
    const uint64_t end = clock_gettime_nsec_np(CLOCK_UPTIME_RAW) + nanoseconds;
    pthread_mutex_lock(&c->mutex);
    while (c->result.state == 0) {
      const uint64_t now = clock_gettime_nsec_np(CLOCK_UPTIME_RAW);
      if (now >= end) break;
      const struct timespec left = {(time_t)((end - now) / 1000000000u), (long)((end - now) % 1000000000u)};
      pthread_cond_timedwait_relative_np(&c->changed, &c->mutex, &left);
    }
    *result = c->result;
    if (c->result.state == 2) {
      error->code = c->code;
      error->text = copied(c->text);
    }
    pthread_mutex_unlock(&c->mutex);
  }
}
