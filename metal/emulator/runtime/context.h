// The switch from one fibre's stack to another's.
//
// msl_switch saves callee-saved registers on the old stack and resumes the new
// one; it returns 0. Callers tail-call it where they can: after a switch the
// processor mispredicts every return on the way out, and this jump, unlike a ret,
// is predicted, since lanes resume at one address.
#pragma once
#include <stdint.h>
#include <string.h>

extern "C" int msl_switch(void** save, void* to);
#if defined(__x86_64__)
asm(R"(
.text
.globl msl_switch
.type msl_switch,@function
msl_switch:
  pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp
  xorl %eax, %eax
  popq %rcx
  jmp *%rcx
.size msl_switch,.-msl_switch
)");
static void* stack_init(char* top, void (*fn)()) {
  void** sp = (void**)((uintptr_t)top & ~(uintptr_t)15);
  *--sp = nullptr;      // keeps rsp = 8 mod 16 at entry
  *--sp = (void*)fn;    // popped by ret
  for (int i = 0; i < 6; i++) *--sp = nullptr;
  return sp;
}
#elif defined(__aarch64__)
asm(R"(
.text
.globl msl_switch
msl_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0];   stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32];  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64];  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96];    stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]; stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0];   ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32];  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64];  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96];    ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]; ldp d14, d15, [sp, #144]
  add sp, sp, #160
  mov w0, #0
  br x30
)");
static void* stack_init(char* top, void (*fn)()) {
  char* sp = (char*)((uintptr_t)top & ~(uintptr_t)15) - 160;
  memset(sp, 0, 160);
  *(void**)(sp + 88) = (void*)fn;  // x30
  return sp;
}
#else
#error "add a context switch for this processor"
#endif
