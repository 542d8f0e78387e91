// Package metal is the backend of GPUs. It turns the blocks of a forward pass
// into lists of dispatches of the kernels in package shaders, and a driver runs
// such a list on hardware: Apple's GPUs, or the emulated device of package
// emulator.
//
// What holds for every list:
//
//   - It can be printed, so that a test sees what a change did to a step, and
//     counted, without a GPU.
//   - Dispatches may overlap except where one has a barrier: it waits for all
//     before it.
//   - Its kernels, with what their function constants are, were prepared when the
//     model was loaded: none is compiled while a reply waits.
//   - The phase of a call chooses the kernels, never the number of its rows.
//   - Nothing is read back while a list runs: routing, the largest logit and
//     the token that follows it stay on the device.
//
// A kernel has the same name as its method of Encoder, in files of the same name:
// shaders/project.metal, metal/project.go.
package metal
