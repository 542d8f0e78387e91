// Package cpu is the backend in Go. Each operation of the model is a plain
// function on slices, in a file named after it: the reference that kernels of
// this and other backends are compared with.
//
// Weights stay in the checkpoint's mapped files, in their own layout and at any
// alignment; only norms, convolution taps and gate parameters, some kilobytes a
// layer, are widened to float32 once. States and scratch memory lie outside the
// Go heap, where closing one gives its memory back at once.
//
// What holds for every operation:
//
//   - Activations are float32 slices, row after row. Rounding says whether the
//     values between operations are rounded to bfloat16; sums, softmax, router
//     logits, gates and the recurrent state are float32 always.
//   - Every sum has one order. Where two code paths must agree to the bit, each
//     product is rounded before it is added: float32(a*b) forbids the compiler
//     to fuse them, which it may do in one path and not in the other.
//   - Work is shared out over goroutines by output values. A sum is never split,
//     so that results do not depend on the number of threads.
package cpu
