package power

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/godbus/dbus/v5"
)

// machine asks logind, over the system's bus.
type machine struct{ heat throttling }

func newMachine() Machine { return &machine{newThrottling(os.DirFS("/sys"))} }

const (
	login    = "org.freedesktop.login1"
	manager  = login + ".Manager"
	sleeping = "PrepareForSleep"
)

// Hold implements Machine.
func (*machine) Hold(reason string) (func(), error) {
	conn, err := connect()
	if err != nil {
		return nil, err
	}
	lock, err := inhibit(conn, "idle", reason, "block")
	if err != nil {
		conn.Close()
		return nil, err
	}
	return sync.OnceFunc(func() {
		lock.Close()
		conn.Close()
	}), nil
}

func connect() (*dbus.Conn, error) {
	conn, err := dbus.ConnectSystemBus()
	if err != nil {
		return nil, fmt.Errorf("power: system bus: %w", err)
	}
	return conn, nil
}

// inhibit takes a lock of logind's, which ends with the file that stands for it.
func inhibit(conn *dbus.Conn, what, why, mode string) (*os.File, error) {
	var fd dbus.UnixFD
	call := conn.Object(login, "/org/freedesktop/login1").Call(manager+".Inhibit", 0, what, "Calla", why, mode)
	if err := call.Store(&fd); err != nil {
		return nil, fmt.Errorf("power: logind: %w", err)
	}
	return os.NewFile(uintptr(fd), "inhibit"), nil
}

// Watch implements Machine. A lock of the kind that delays makes the machine wait
// for before.
func (*machine) Watch(ctx context.Context, before, after func()) error {
	conn, err := connect()
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.AddMatchSignal(dbus.WithMatchInterface(manager), dbus.WithMatchMember(sleeping)); err != nil {
		return fmt.Errorf("power: listen to logind: %w", err)
	}
	signals := make(chan *dbus.Signal, 8)
	conn.Signal(signals)
	delay := func() (*os.File, error) { return inhibit(conn, "sleep", "stop between two tokens", "delay") }
	lock, err := delay()
	if err != nil {
		return err
	}
	defer func() { lock.Close() }() // the newest; closing twice does no harm
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case s, ok := <-signals:
			if !ok {
				return errors.New("power: the system bus is gone")
			}
			falls, ok := sleepOf(s)
			switch {
			case !ok:
			case falls:
				before()
				lock.Close()
			default:
				after()
				if lock, err = delay(); err != nil {
					return err
				}
			}
		}
	}
}

// sleepOf reads logind's word of a sleep that begins or has ended.
func sleepOf(s *dbus.Signal) (falls, ok bool) {
	if s.Name != manager+"."+sleeping || len(s.Body) != 1 {
		return false, false
	}
	falls, ok = s.Body[0].(bool)
	return falls, ok
}

// Condition implements Machine.
func (m *machine) Condition() Condition {
	return Condition{Thermal: m.heat.state(time.Now()), LowPower: lowPower(m.heat.files)}
}
