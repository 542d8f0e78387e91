package cpu

import (
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// pool is a fixed number of goroutines that share the tasks of one job. The
// caller is one of them, so that a pool of one starts none.
//
// A decoded token is some hundred jobs with microseconds between them, so the
// others wait for the next with open eyes, for a while; then they sleep, and an
// idle pool takes no processor time. Nobody waits for a goroutine that the
// system does not run: a job is done when its tasks are, whoever did them, and
// who waits for the last of them sleeps too before long.
type pool struct {
	threads int
	start   sync.Once
	ended   sync.WaitGroup

	current atomic.Pointer[job]
	helpers []helper
}

// helper is what the caller knows of another goroutine.
type helper struct {
	asleep atomic.Bool
	wake   chan struct{} // holds a word for one that sleeps
	_      [48]byte      // helpers don't share a cache line
}

// job is a number of tasks, each done once by whichever goroutine comes to it.
type job struct {
	do    func(worker, task int)
	tasks int64
	_     [40]byte
	next  atomic.Int64
	left  atomic.Int64 // tasks not done
	_     [48]byte
	// waiting says that the caller sleeps until done.
	waiting atomic.Bool
	done    chan struct{}
	fault   atomic.Pointer[any] // what a task panicked with
	closing bool                // no job: the pool ends
}

const (
	// helperSpins and callerSpins are how often a goroutine looks before it
	// sleeps: some tens of microseconds, about what being woken costs.
	helperSpins = 2000
	callerSpins = 1000
)

func newPool(threads int) *pool {
	p := &pool{threads: threads, helpers: make([]helper, max(0, threads-1))}
	for i := range p.helpers {
		p.helpers[i].wake = make(chan struct{}, 1)
	}
	return p
}

// run calls do(worker, task) for every task and returns when all are done.
// Calls of one worker never overlap. A panic in any of them is the caller's.
func (p *pool) run(tasks int, do func(worker, task int)) {
	if p.threads == 1 || tasks <= 1 {
		for i := range tasks {
			do(0, i)
		}
		return
	}
	p.start.Do(p.launch)
	j := &job{do: do, tasks: int64(tasks), done: make(chan struct{}, 1)}
	j.left.Store(j.tasks)
	p.publish(j, min(len(p.helpers), tasks-1))
	j.work(0)
	j.wait()
	j.do = nil // the pool keeps the job, and nothing that it was about
	if e := j.fault.Load(); e != nil {
		panic(*e)
	}
}

// publish shows a job to the helpers and wakes some of those that sleep.
func (p *pool) publish(j *job, wanted int) {
	p.current.Store(j)
	for i := range p.helpers[:wanted] {
		if h := &p.helpers[i]; h.asleep.Load() && h.asleep.CompareAndSwap(true, false) {
			h.wake <- struct{}{}
		}
	}
}

func (p *pool) launch() {
	for i := range p.helpers {
		p.ended.Go(func() {
			// A weight that can't be read from its file is an error of one
			// call, not the end of the process.
			debug.SetPanicOnFault(true)
			p.help(&p.helpers[i], i+1)
		})
	}
}

// help works on one job after the other.
func (p *pool) help(h *helper, worker int) {
	var last *job
	for {
		j := p.await(h, last)
		if j.closing {
			return
		}
		j.work(worker)
		last = j
	}
}

// await returns the job that comes after last.
func (p *pool) await(h *helper, last *job) *job {
	for {
		for range helperSpins {
			if j := p.current.Load(); j != last {
				return j
			}
			pause()
		}
		h.asleep.Store(true)
		if p.current.Load() == last || !h.asleep.CompareAndSwap(true, false) {
			// Either nothing came, or who published has seen this one asleep.
			<-h.wake
		}
	}
}

// work does tasks until none is left to begin.
func (j *job) work(worker int) {
	for {
		task := j.next.Add(1) - 1
		if task >= j.tasks {
			return
		}
		j.one(worker, int(task))
	}
}

func (j *job) one(worker, task int) {
	defer func() {
		if e := recover(); e != nil {
			j.fault.Store(&e)
		}
		if j.left.Add(-1) == 0 && j.waiting.Load() {
			j.done <- struct{}{}
		}
	}()
	j.do(worker, task)
}

// wait returns when every task is done.
func (j *job) wait() {
	for range callerSpins {
		if j.left.Load() == 0 {
			return
		}
		pause()
	}
	j.waiting.Store(true)
	if j.left.Load() > 0 {
		<-j.done
	}
}

// close ends the goroutines.
func (p *pool) close() {
	p.publish(&job{closing: true}, len(p.helpers))
	p.ended.Wait()
}
