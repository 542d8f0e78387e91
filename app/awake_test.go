package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"calla/app/power"
	"calla/core/engine"
)

// fakeMachine is a machine that sleeps when a test says so.
type fakeMachine struct {
	fails  bool
	held   atomic.Int32
	ever   atomic.Int32
	sleeps chan bool // true falls asleep
	done   chan struct{}
}

func (m *fakeMachine) Hold(string) (func(), error) {
	m.ever.Add(1)
	if m.fails {
		return nil, errors.New("no power")
	}
	m.held.Add(1)
	return sync.OnceFunc(func() { m.held.Add(-1) }), nil
}

func (m *fakeMachine) Watch(ctx context.Context, before, after func()) error {
	if m.fails {
		return errors.New("no word")
	}
	for {
		select {
		case falls := <-m.sleeps:
			if falls {
				before()
			} else {
				after()
			}
			m.done <- struct{}{}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (m *fakeMachine) Condition() power.Condition { return power.Condition{} }

func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 5000 {
		if ok() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("never came: %s", what)
}

func TestStayAwake(t *testing.T) {
	for _, fails := range []bool{false, true} {
		m := &fakeMachine{fails: fails}
		var busy atomic.Bool
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			stayAwake(ctx, busy.Load, m, time.Millisecond, slog.New(slog.DiscardHandler))
			close(ended)
		}()
		for i := range int32(3) {
			busy.Store(true)
			soon(t, "it asks for power", func() bool { return m.ever.Load() == i+1 && (fails || m.held.Load() == 1) })
			busy.Store(false)
			soon(t, "it lets go", func() bool { return m.held.Load() == 0 })
			time.Sleep(5 * time.Millisecond) // so that it has seen it
		}
		busy.Store(true)
		soon(t, "it asks again", func() bool { return m.ever.Load() == 4 })
		cancel()
		<-ended
		if n := m.held.Load(); n != 0 {
			t.Errorf("%d holds are left", n)
		}
	}
}

// A machine that sleeps in the middle of an answer wakes to the rest of it.
func TestFollowSleep(t *testing.T) {
	r := startDemo(t, demoSettings(), nil, nil)
	if err := r.WaitLoaded(context.Background()); err != nil {
		t.Fatal(err)
	}
	ask := func() *engine.Generation {
		g, err := r.Submit(context.Background(), engine.Request{Prompt: []int32{5, 6, 7}, MaxTokens: 300, LogProbs: engine.NoLogProbs,
			Sampling: engine.Sampling{LogitBias: never(r.options.StopTokens)}})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	all := func(g *engine.Generation) (tokens []int32) {
		for {
			e, err := g.Next(context.Background())
			if err != nil {
				return tokens
			}
			if e.Token >= 0 {
				tokens = append(tokens, e.Token)
			}
		}
	}
	want := all(ask())
	m := &fakeMachine{sleeps: make(chan bool), done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go followSleep(ctx, r.Engine, m, slog.New(slog.DiscardHandler))
	g := ask()
	soon(t, "it runs", func() bool { return r.Status().Running != nil })
	m.sleeps <- true
	<-m.done
	steps := r.Status().Totals.Steps
	time.Sleep(20 * time.Millisecond)
	if n := r.Status().Totals.Steps; n != steps {
		t.Errorf("%d steps in the machine's sleep", n-steps)
	}
	m.sleeps <- false
	<-m.done
	if got := all(g); len(got) != len(want) {
		t.Errorf("%d tokens over a sleep, want %d", len(got), len(want))
	}
	// Nobody tells of sleep any more: it must not last.
	m.sleeps <- true
	<-m.done
	cancel()
	all(ask())
}

// never keeps tokens from being chosen.
func never(tokens []int32) map[int32]float64 {
	bias := map[int32]float64{}
	for _, id := range tokens {
		bias[id] = -100
	}
	return bias
}
