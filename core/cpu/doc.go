// Package cpu is the backend in Go. Each operation of the model is a plain
// function on slices, in a file named after it: the reference that kernels of
// this and other backends are compared with.
//
// Beside them stand fast twins in assembly for amd64 (fast_*.go), which
// scripts/kernels generates. A device runs the best that its processor can, or
// those that Options.Kernels names; GODEBUG=cpu.amxint8=off, cpu.avx512vnni=off
// and cpu.avx2=off take instructions from any program (of the first two, Go's own
// runtime says that it doesn't know them). The fast products take
// activations as 16-bit integers (activations.go says with what error), in
// decode row by row of the matrix as it lies in its file (matVec), in prefill
// with a panel of it unpacked once for all rows (panel.go), by the vector units or
// by AMX's matrix unit (tiled.go): to the same bits. Where nothing is rounded,
// products stay the plain ones of float32.
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
//   - Every sum has one order, on one kind of processor. Where two code paths
//     must agree to the bit, each product is rounded before it is added:
//     float32(a*b) forbids the compiler to fuse them, which it may do in one path
//     and not in the other. Assembly fuses always.
//   - Work is shared out over goroutines by output values. A sum is never split,
//     so that results do not depend on the number of threads.
package cpu
