// Package cuda drives one NVIDIA GPU through the driver that is installed with
// it: libcuda, loaded at run time. There is no CUDA toolkit and no cgo in it.
//
// What runs are the Metal kernels: clang turns their sources into PTX
// (scripts/emulator --cuda), Source takes one kernel out of such a file and puts
// in the values of its function constants, and the driver compiles what is left
// for the GPU at hand.
//
// All work goes to one queue, in order. Copies wait for what was launched before
// them. An error of a kernel is found by whatever waits next, and ends all use of
// the Device: memory and results are lost.
package cuda
