package supervise

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// quick is a policy for tests. What must not happen has long to happen in.
var quick = Policy{
	Bind: time.Minute, Poll: 10 * time.Millisecond, Misses: 2, Hangs: 2,
	Grace: time.Minute, Soon: 50 * time.Millisecond,
	Waits: []time.Duration{time.Millisecond, time.Millisecond}, Healthy: time.Hour,
}

// recorder keeps events and waits for them.
type recorder struct {
	t      *testing.T
	engine *Engine
	events chan Event
}

func newRecorder(t *testing.T, p Policy) *recorder {
	r := &recorder{t: t, events: make(chan Event, 10000)}
	r.engine = New(p, io.Discard, func(e Event) { r.events <- e })
	t.Cleanup(func() {
		r.engine.Stop(true)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := r.engine.Wait(ctx); err != nil {
			t.Error("a child is left:", err)
		}
	})
	return r
}

func (r *recorder) start(l Launch) {
	r.t.Helper()
	if err := r.engine.Start(l); err != nil {
		r.t.Fatal(err)
	}
}

// next returns the next event but readings of the status.
func (r *recorder) next() Event {
	r.t.Helper()
	for {
		if e := r.any(); !isObserved(e) {
			return e
		}
	}
}

func isObserved(e Event) bool { _, ok := e.(Observed); return ok }

func (r *recorder) any() Event {
	r.t.Helper()
	select {
	case e := <-r.events:
		return e
	case <-time.After(time.Minute):
		r.t.Fatal("no event in a minute")
		return nil
	}
}

// observed waits for a reading and returns the child's process.
func (r *recorder) observed() (pid int) {
	r.t.Helper()
	for {
		if o, ok := r.any().(Observed); ok {
			var s struct{ Pid int }
			if err := json.Unmarshal(o.Body, &s); err != nil {
				r.t.Fatal(err)
			}
			return s.Pid
		}
	}
}

func (r *recorder) want(want ...Event) {
	r.t.Helper()
	for _, w := range want {
		if d := cmp.Diff(w, r.next()); d != "" {
			r.t.Fatalf("event differs (-want +got):\n%s", d)
		}
	}
}

func TestLife(t *testing.T) {
	r := newRecorder(t, quick)
	r.start(fake("engine"))
	if _, ok := r.any().(Listening); !ok {
		t.Fatal("the first event is not Listening")
	}
	pid := r.observed()
	if err := r.engine.Start(fake("engine")); !errors.Is(err, ErrRunning) {
		t.Errorf("a second Start: %v, want ErrRunning", err)
	}
	r.engine.Stop(false)
	r.want(Ended{})
	gone(t, pid)

	r.start(fake("engine"))
	if again := r.observed(); again == pid {
		t.Error("the same process again")
	}
}

func TestStatusCarriesTheKey(t *testing.T) {
	r := newRecorder(t, quick)
	l := fake("engine")
	l.Key = "sk-secret"
	r.start(l)
	r.next()
	if o, ok := r.any().(Observed); !ok || !strings.Contains(string(o.Body), `"Bearer sk-secret"`) {
		t.Errorf("status is %s", o.Body)
	}
}

// What another start can't mend is not tried again.
func TestFinalCauses(t *testing.T) {
	for status, cause := range causes {
		t.Run(string(cause), func(t *testing.T) {
			r := newRecorder(t, quick)
			r.start(fake("exit", strconv.Itoa(status), "port 1 is in use by x"))
			r.want(Ended{cause, "port 1 is in use by x"})
		})
	}
}

// All else is tried again, with a reason, and given up.
func TestCrashes(t *testing.T) {
	for _, tt := range []struct {
		name   string
		launch Launch
		reason string
	}{
		{"an error", fake("exit", "1", "no luck"), "no luck"},
		{"a panic", fake("panic"), "panic: the device is gone"},
		{"killed", fake("killed"), "the engine was ended by signal: killed (out of memory?)"},
		{"leaves by itself", fake("leaves"), "the engine ended with status 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRecorder(t, quick)
			r.start(tt.launch)
			r.want(Crashed{tt.reason, 1, 2}, Relaunched{}, Crashed{tt.reason, 2, 2}, Relaunched{}, Ended{Crash, tt.reason})
		})
	}
}

func TestNoSuchProgram(t *testing.T) {
	p := quick
	p.Waits = nil
	r := newRecorder(t, p)
	r.start(Launch{Path: "/nowhere/calla"})
	r.want(Ended{Crash, "the engine could not be launched: fork/exec /nowhere/calla: no such file or directory"})
}

// Children that live and are no good are ended and started again.
func TestFaults(t *testing.T) {
	for _, tt := range []struct{ fake, reason string }{
		{"stuck", "the engine hangs: a reason"},
		{"deaf", "the engine does not answer: the status is a 503"},
		{"stranger", "the engine does not answer: another program answers in its place"},
	} {
		t.Run(tt.fake, func(t *testing.T) {
			r := newRecorder(t, quick)
			r.start(fake(tt.fake))
			r.next() // Listening
			r.want(Crashed{tt.reason, 1, 2}, Relaunched{})
		})
	}
	t.Run("mute", func(t *testing.T) {
		p := quick
		p.Bind = 50 * time.Millisecond
		r := newRecorder(t, p)
		r.start(fake("mute"))
		r.want(Crashed{"the engine did not bind its address in time", 1, 2})
	})
}

func TestHealthyRunCountsAnew(t *testing.T) {
	p := quick
	p.Healthy = 0 // every run was long
	r := newRecorder(t, p)
	r.start(fake("leaves"))
	for range 5 {
		r.want(Crashed{"the engine ended with status 0", 1, 2}, Relaunched{})
	}
}

func TestKilledFromOutsideComesBack(t *testing.T) {
	r := newRecorder(t, quick)
	r.start(fake("engine"))
	pid := r.observed()
	syscall.Kill(pid, syscall.SIGKILL)
	r.want(Crashed{"the engine was ended by signal: killed (out of memory?)", 1, 2}, Relaunched{})
	if again := r.observed(); again == pid {
		t.Error("the same process again")
	}
}

// A child that does not leave is killed: at once, where this program ends.
func TestForce(t *testing.T) {
	t.Run("after the grace", func(t *testing.T) {
		p := quick
		p.Grace = 50 * time.Millisecond
		r := newRecorder(t, p)
		r.start(fake("stubborn"))
		pid := r.observed()
		r.engine.Stop(false)
		r.want(Ended{})
		gone(t, pid)
	})
	t.Run("a quit shortens a stop", func(t *testing.T) {
		p := quick
		p.Grace = time.Hour
		r := newRecorder(t, p)
		r.start(fake("stubborn"))
		pid := r.observed()
		r.engine.Stop(false)
		r.engine.Stop(true)
		r.want(Ended{})
		gone(t, pid)
	})
	t.Run("before it has an address", func(t *testing.T) {
		r := newRecorder(t, quick)
		r.start(fake("mute"))
		r.engine.Stop(false)
		r.want(Ended{})
	})
}

func TestWhileWaiting(t *testing.T) {
	slow := quick
	slow.Waits = []time.Duration{time.Hour, time.Hour}
	t.Run("a stop", func(t *testing.T) {
		r := newRecorder(t, slow)
		r.start(fake("leaves"))
		r.next() // Crashed
		r.engine.Stop(false)
		r.want(Ended{})
	})
	t.Run("a start, with other settings", func(t *testing.T) {
		r := newRecorder(t, slow)
		r.start(fake("leaves"))
		r.next() // Crashed
		waitFor(t, "the wait", func() bool { return r.engine.Start(fake("engine")) == nil })
		r.observed()
	})
}

// A killed app leaves no engine, even one that ignores what it is told.
func TestNoOrphan(t *testing.T) {
	for _, tt := range []struct{ app, engine string }{
		{"app", "engine"},
		{"app", "stubborn"},
		{"app by the pipe alone", "engine"},
		{"app by the pipe alone", "hung"},
	} {
		t.Run(tt.app+", "+tt.engine, func(t *testing.T) {
			l := fake(tt.app, tt.engine)
			cmd := exec.Command(l.Path, l.Args...)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			pid, atoi := strconv.Atoi(strings.TrimSpace(line))
			if err := errors.Join(err, atoi); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			cmd.Wait()
			gone(t, pid)
		})
	}
}

// gone waits until a process is no more, or only waits to be reaped.
func gone(t *testing.T, pid int) {
	t.Helper()
	waitFor(t, fmt.Sprintf("the end of process %d", pid), func() bool {
		if syscall.Kill(pid, 0) != nil {
			return true
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err == nil && strings.Contains(string(stat), ") Z ")
	})
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 6000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("never saw %s", what)
}

func TestClaim(t *testing.T) {
	dir := t.TempDir()
	first, err := NewClaim(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewClaim(dir); !errors.Is(err, ErrClaimed) {
		t.Fatalf("a second claim: %v, want ErrClaimed", err)
	}
	<-first.Calls()
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := NewClaim(dir)
	if err != nil {
		t.Fatalf("after a release: %v", err)
	}
	again.Release()
}

// The lock of a process that was killed is no lock.
func TestClaimAfterKill(t *testing.T) {
	dir := t.TempDir()
	l := fake("claim", dir)
	cmd := exec.Command(l.Path, l.Args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "claimed\n" {
		t.Fatal(line, err)
	}
	if _, err := NewClaim(dir); !errors.Is(err, ErrClaimed) {
		t.Fatalf("beside a process that lives: %v, want ErrClaimed", err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	c, err := NewClaim(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Release()
	go NewClaim(dir)
	<-c.Calls() // the socket was made anew, too
}

func TestAttachNeedsAParent(t *testing.T) {
	for _, in := range []string{"", "\n", "nonce without an end"} {
		if _, _, err := Attach(t.Context(), strings.NewReader(in), io.Discard); err == nil {
			t.Errorf("Attach to %q succeeds", in)
		}
	}
}

// A stranger who listens where the engine said it would is not believed, and
// not sent on by a redirect either.
func TestReadStatusBelievesNobodyElse(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
	}{
		{"a page", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }},
		{"no nonce", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"state":"ready"}`) }},
		{"another nonce", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"state":"ready","instance":"y"}`) }},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x", http.StatusFound) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go http.Serve(l, tt.answer)
			if got := readStatus("http://"+l.Addr().String(), "x", ""); got.err == nil {
				t.Errorf("believed %s", got.body)
			}
		})
	}
}
