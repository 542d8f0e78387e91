package cpu

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

func TestPoolDoesEveryTaskOnce(t *testing.T) {
	for _, threads := range []int{1, 2, 5} {
		p := newPool(threads)
		for _, tasks := range []int{0, 1, 2, 3, 100} {
			done := make([]atomic.Int32, tasks)
			busy := make([]atomic.Bool, threads)
			for range 50 {
				p.run(tasks, func(worker, task int) {
					if busy[worker].Swap(true) {
						t.Errorf("two tasks of worker %d at once", worker)
					}
					done[task].Add(1)
					busy[worker].Store(false)
				})
			}
			for i := range done {
				if n := done[i].Load(); n != 50 {
					t.Errorf("%d threads: task %d of %d was done %d times, want 50", threads, i, tasks, n)
				}
			}
		}
		p.close()
	}
}

// A panic in any task reaches the caller, whoever ran it, and the pool goes on.
func TestPoolPanicReachesCaller(t *testing.T) {
	p := newPool(3)
	defer p.close()
	for task := range 20 {
		got := func() (e any) {
			defer func() { e = recover() }()
			p.run(20, func(_, i int) {
				if i == task {
					panic("broken")
				}
			})
			return nil
		}()
		if got != "broken" {
			t.Errorf("task %d panicked, the caller saw %v", task, got)
		}
	}
}

func TestPoolLeavesNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	p := newPool(8)
	p.run(100, func(_, _ int) {})
	p.close()
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

// A pool without work sleeps, and what comes then is done.
func TestPoolSleepsAndWakes(t *testing.T) {
	p := newPool(4)
	defer p.close()
	for range 3 {
		var done atomic.Int32
		p.run(100, func(_, _ int) { done.Add(1) })
		if n := done.Load(); n != 100 {
			t.Fatalf("%d tasks were done, want 100", n)
		}
		for i := range p.helpers {
			for !p.helpers[i].asleep.Load() {
				time.Sleep(time.Millisecond) // the test's own limit of time ends this
			}
		}
	}
}

// Jobs are done where the helpers hardly ever get to run.
func TestPoolOnOneProcessor(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	p := newPool(4)
	defer p.close()
	var done atomic.Int32
	for range 200 {
		p.run(5, func(_, _ int) { done.Add(1) })
	}
	if n := done.Load(); n != 1000 {
		t.Errorf("%d tasks were done, want 1000", n)
	}
}
