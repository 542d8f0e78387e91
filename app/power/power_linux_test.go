package power

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/godbus/dbus/v5"
)

// logind is a stand-in for systemd's, on a system bus of its own.
type logind struct {
	conn *dbus.Conn

	mu    sync.Mutex
	locks []*lock
}

// lock is a lock that was given out: the end that logind keeps of a pipe, and the
// one that it sent.
type lock struct {
	what, why, mode string
	kept, sent      *os.File
}

// Inhibit is org.freedesktop.login1.Manager.Inhibit.
func (l *logind) Inhibit(what, _, why, mode string) (dbus.UnixFD, *dbus.Error) {
	r, w, err := os.Pipe()
	if err != nil {
		return 0, dbus.MakeFailedError(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.locks = append(l.locks, &lock{what, why, mode, r, w})
	return dbus.UnixFD(w.Fd()), nil
}

// newest waits for the n-th lock.
func (l *logind) newest(t *testing.T, n int) *lock {
	t.Helper()
	for range 5000 {
		l.mu.Lock()
		if len(l.locks) >= n {
			defer l.mu.Unlock()
			return l.locks[n-1]
		}
		l.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("lock %d was never taken", n)
	return nil
}

func (l *logind) sleeps(t *testing.T, falls bool) {
	t.Helper()
	if err := l.conn.Emit("/org/freedesktop/login1", manager+"."+sleeping, falls); err != nil {
		t.Fatal(err)
	}
}

// startBus starts a system bus, with a logind on it or without.
func startBus(t *testing.T, with bool) *logind {
	t.Helper()
	daemon, err := exec.LookPath("dbus-daemon")
	if err != nil {
		t.Skip("no dbus-daemon")
	}
	cmd := exec.Command(daemon, "--session", "--nofork", "--print-address")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", strings.TrimSpace(address))
	if !with {
		return nil
	}
	conn, err := dbus.ConnectSystemBus()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	l := &logind{conn: conn}
	if err := conn.Export(l, "/org/freedesktop/login1", manager); err != nil {
		t.Fatal(err)
	}
	if reply, err := conn.RequestName(login, 0); err != nil || reply != dbus.RequestNameReplyPrimaryOwner {
		t.Fatalf("%v, %v", reply, err)
	}
	return l
}

// closed waits until nobody holds the lock any more.
func (k *lock) closed(t *testing.T) {
	t.Helper()
	k.sent.Close() // ours; the other end has its own
	done := make(chan struct{})
	go func() { k.kept.Read(make([]byte, 1)); close(done) }()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatalf("the lock on %s is held", k.what)
	}
}

func TestHold(t *testing.T) {
	l := startBus(t, true)
	release, err := New().Hold("tokens flow")
	if err != nil {
		t.Fatal(err)
	}
	k := l.newest(t, 1)
	if k.what != "idle" || k.mode != "block" || k.why != "tokens flow" {
		t.Errorf("lock %q, %q, %q; want one on idle that blocks", k.what, k.mode, k.why)
	}
	release()
	k.closed(t)
	release() // harmless
}

func TestWatch(t *testing.T) {
	l := startBus(t, true)
	ctx, cancel := context.WithCancelCause(context.Background())
	told := make(chan string, 10)
	ended := make(chan error, 1)
	goOn := make(chan struct{})
	go func() {
		ended <- New().Watch(ctx, func() { told <- "before"; <-goOn }, func() { told <- "after" })
	}()
	expect := func(want string) {
		t.Helper()
		select {
		case got := <-told:
			if got != want {
				t.Fatalf("told %q, want %q", got, want)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("never told %q", want)
		}
	}
	for night := range 2 {
		k := l.newest(t, night+1)
		if k.what != "sleep" || k.mode != "delay" {
			t.Errorf("lock %q, %q; want one on sleep that delays", k.what, k.mode)
		}
		l.sleeps(t, true)
		expect("before")
		goOn <- struct{}{}
		k.closed(t) // and the machine sleeps
		l.sleeps(t, false)
		expect("after")
	}
	over := errors.New("over")
	cancel(over)
	if err := <-ended; !errors.Is(err, over) {
		t.Errorf("Watch ended with %v", err)
	}
	l.newest(t, 3).closed(t)
}

func TestNoLogind(t *testing.T) {
	for _, bus := range []bool{false, true} {
		if bus {
			startBus(t, false)
		} else {
			t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+t.TempDir()+"/none")
		}
		if _, err := New().Hold("x"); err == nil {
			t.Errorf("a bus: %v: Hold without logind did not fail", bus)
		}
		if err := New().Watch(context.Background(), nil, nil); err == nil {
			t.Errorf("a bus: %v: Watch without logind did not fail", bus)
		}
	}
}

func TestCondition(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	const core0, core1, profile = "devices/system/cpu/cpu0/thermal_throttle/core_throttle_count",
		"devices/system/cpu/cpu1/thermal_throttle/package_throttle_count", "firmware/acpi/platform_profile"
	for _, tt := range []struct {
		name    string
		reading []fstest.MapFS
		want    Condition
	}{
		{"nothing to read", []fstest.MapFS{{}}, Condition{}},
		{"cool", []fstest.MapFS{{core0: file("7\n")}, {core0: file("7\n")}}, Condition{Thermal: Nominal}},
		{"the first reading tells of long ago", []fstest.MapFS{{core0: file("7\n")}}, Condition{Thermal: Nominal}},
		{"hot", []fstest.MapFS{{core0: file("7\n"), core1: file("1\n")}, {core0: file("7\n"), core1: file("2\n")}}, Condition{Thermal: Serious}},
		{"hot a moment ago", []fstest.MapFS{{core0: file("7\n")}, {core0: file("8\n")}, {core0: file("8\n")}}, Condition{Thermal: Serious}},
		{"cool again", []fstest.MapFS{{core0: file("7\n")}, {core0: file("8\n")}, {core0: file("8\n")}, {core0: file("8\n")}, {core0: file("8\n")}}, Condition{Thermal: Nominal}},
		{"no number", []fstest.MapFS{{core0: file("x")}, {core0: file("y")}}, Condition{Thermal: Nominal}},
		{"saving", []fstest.MapFS{{profile: file("low-power\n")}}, Condition{LowPower: true}},
		{"balanced", []fstest.MapFS{{profile: file("balanced\n")}}, Condition{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			heat := newThrottling(nil)
			at := time.Unix(1000, 0)
			var got Condition
			for _, heat.files = range tt.reading {
				got = Condition{heat.state(at), lowPower(heat.files)}
				at = at.Add(4 * time.Second)
			}
			if got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}
