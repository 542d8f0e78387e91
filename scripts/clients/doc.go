// Package clients holds tests alone: the clients that people use, as they are
// published, talk over HTTP to a calla process that serves the demo model.
//
// It is a module of its own, because the Go SDK among them takes minutes and
// gigabytes to compile, which no user of calla should pay. A client in another
// language is a script that answers one JSON line with another (see script).
package clients
