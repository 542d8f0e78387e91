// Package emulator runs the Metal kernels without a Mac: the same sources,
// compiled as C++ through a standard library of our own, one fibre a Metal
// thread. Threadgroups have real barriers, simdgroups 32 lanes; threadgroup
// memory and buffers start as NaN; divergence, a write beyond a buffer and
// whatever breaks a limit of Metal ends a run with the kernel and the line.
//
// A Library is a shared library in this process. A Runner is a program of its
// own, built with sanitizers: it is slower, and catches races, reads out of
// bounds and undefined behaviour too. scripts/emulator builds both.
//
// A Traced library counts what kernels load, store and calculate as they run.
//
// The folders beside this file: mslgen turns a source into C++, irflops makes its
// compiled form count arithmetic, shim is the standard library (and the strict
// type pass), runtime holds fibres and lists, seeded has a planted fault a kernel,
// to prove that each is caught.
package emulator
