//go:build !linux && !(darwin && cgo)

package power

import (
	"context"
	"errors"
)

var errNothing = errors.New("power: this build knows nothing of the machine's power")

type machine struct{}

func newMachine() Machine { return machine{} }

func (machine) Hold(string) (func(), error) { return nil, errNothing }

func (machine) Watch(context.Context, func(), func()) error { return errNothing }

func (machine) Condition() Condition { return Condition{} }
