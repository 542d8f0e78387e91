package supervise

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// The test binary is the engine too, and the app that is killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "as" {
		os.Exit(fakes[os.Args[2]](os.Args[3:]))
	}
	os.Exit(m.Run())
}

func fake(name string, args ...string) Launch {
	return Launch{Path: os.Args[0], Args: append([]string{"as", name}, args...)}
}

var fakes map[string]func([]string) int

func init() {
	fakes = map[string]func([]string) int{
		"engine":   func([]string) int { return serve(serving{}) },
		"stubborn": func([]string) int { return serve(serving{ignoreTerm: true}) },
		"hung":     func([]string) int { return serve(serving{ignoreTerm: true, hangs: true}) },
		"stranger": func([]string) int { return serve(serving{instance: "another"}) },
		"stuck":    func([]string) int { return serve(serving{state: "stuck"}) },
		"deaf":     func([]string) int { return serve(serving{answers: 2}) },
		"mute":     func([]string) int { time.Sleep(time.Hour); return 0 },
		"exit": func(a []string) int {
			n, _ := strconv.Atoi(a[0])
			fmt.Fprintln(os.Stderr, "some log line\ncalla: "+a[1])
			return n
		},
		"panic": func([]string) int { panic("the device is gone") },
		"killed": func([]string) int {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			return 0
		},
		"leaves": func([]string) int { return 0 },
		"app":    app,
		"app by the pipe alone": func(a []string) int {
			deathSignal = 0
			return app(a)
		},
		"claim": claim,
	}
}

// serving is an engine that only has a status.
type serving struct {
	state, instance string
	answers         int32 // then it says nothing more; 0 is no bound
	ignoreTerm      bool
	hangs           bool // when its parent is gone
}

func serve(s serving) int {
	leaveTime = 100 * time.Millisecond
	ctx, parent, err := Attach(context.Background(), os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if s.ignoreTerm {
		signal.Ignore(syscall.SIGTERM)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 1
	}
	var asked atomic.Int32
	instance, state := parent.Nonce, "ready"
	if s.instance != "" {
		instance = s.instance
	}
	if s.state != "" {
		state = s.state
	}
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := asked.Add(1); s.answers > 0 && n > s.answers {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		json.NewEncoder(w).Encode(map[string]any{
			"instance": instance, "state": state, "reason": "a reason", "pid": os.Getpid(), "key": r.Header.Get("Authorization"),
		})
	}))
	if err := parent.Listening("http://" + l.Addr().String()); err != nil {
		return 1
	}
	stop := make(chan os.Signal, 1)
	if !s.ignoreTerm {
		signal.Notify(stop, syscall.SIGTERM)
	}
	select {
	case <-stop:
	case <-ctx.Done():
		if s.hangs {
			time.Sleep(time.Hour)
		}
	}
	return 0
}

// app supervises an engine, prints the engine's process and waits to be killed.
func app(args []string) int {
	e := New(quick, os.Stderr, func(ev Event) {
		if o, ok := ev.(Observed); ok {
			var s struct{ Pid int }
			json.Unmarshal(o.Body, &s)
			fmt.Println(s.Pid)
		}
	})
	if err := e.Start(fake(args[0])); err != nil {
		return 1
	}
	time.Sleep(time.Hour)
	return 0
}

// claim claims a folder and waits to be killed.
func claim(args []string) int {
	if _, err := NewClaim(args[0]); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("claimed")
	time.Sleep(time.Hour)
	return 0
}
