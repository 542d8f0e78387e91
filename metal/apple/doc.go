// Package apple drives Apple's GPUs through Metal.
//
// Metal itself is called by a shim of plain C functions (shim_darwin.m), which
// decides nothing. What is decided stands in Go and is tested on any system
// against a recording of the shim: which order the dispatches of a list keep,
// where a command buffer ends, how long it may take, what is released when, and
// what follows a failure.
//
// No buffer is tracked by Metal, so nothing orders two dispatches but what is said
// here. Within an encoder a barrier does. Between encoders, and so between command
// buffers, one fence does: every encoder waits for it before its first dispatch
// and updates it behind its last.
//
// What a handle stands for is owned by one Go value and released once, and memory
// only when no command buffer is at work on it.
package apple
