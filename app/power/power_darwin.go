//go:build cgo

package power

/*
#cgo CFLAGS: -x objective-c -fobjc-arc -O2
#cgo LDFLAGS: -framework IOKit -framework Foundation
#include <stdlib.h>
#include "power_darwin.h"
*/
import "C"

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"unsafe"
)

type machine struct{}

func newMachine() Machine { return machine{} }

// Hold implements Machine.
func (machine) Hold(reason string) (func(), error) {
	text := C.CString(reason)
	defer C.free(unsafe.Pointer(text))
	var hold C.uint32_t
	if code := C.calla_power_hold(text, &hold); code != 0 {
		return nil, fmt.Errorf("power: no power assertion: IOReturn %#x", uint32(code))
	}
	return sync.OnceFunc(func() { C.calla_power_release(hold) }), nil
}

// Watch implements Machine. Events come over a pipe, so that no Go function is
// called from a thread of the system.
func (machine) Watch(ctx context.Context, before, after func()) error {
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("power: %w", err)
	}
	defer r.Close()
	defer w.Close()
	watch := C.calla_power_begin(C.int(w.Fd()))
	if watch == nil {
		return errors.New("power: the system does not tell of its sleep")
	}
	defer C.calla_power_end(watch)
	defer context.AfterFunc(ctx, func() { r.Close() })()
	for {
		var e [16]byte // a calla_power_event
		if _, err := io.ReadFull(r, e[:]); err != nil {
			return context.Cause(ctx)
		}
		switch binary.NativeEndian.Uint64(e[:]) {
		case C.calla_power_sleeps:
			before()
			C.calla_power_allow(watch, C.int64_t(binary.NativeEndian.Uint64(e[8:])))
		case C.calla_power_wakes:
			after()
		}
	}
}

// states are those of NSProcessInfo, by its numbers.
var states = [...]Thermal{Nominal, Fair, Serious, Critical}

// Condition implements Machine.
func (machine) Condition() Condition {
	c := Condition{LowPower: C.calla_power_low() != 0}
	if t := int(C.calla_power_thermal()); t >= 0 && t < len(states) {
		c.Thermal = states[t]
	}
	return c
}
