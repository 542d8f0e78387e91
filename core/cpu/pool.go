package cpu

import (
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// pool is a fixed number of goroutines that share the tasks of one job. The
// caller is one of them, so that a pool of one starts none.
type pool struct {
	threads int
	jobs    chan *job
	start   sync.Once
	ended   sync.WaitGroup
}

// job is a number of tasks, each done once by whichever goroutine comes to it.
type job struct {
	do    func(worker, task int)
	tasks int
	next  atomic.Int64
	done  sync.WaitGroup
	fault atomic.Pointer[any] // what a helper panicked with
}

func newPool(threads int) *pool {
	return &pool{threads: threads, jobs: make(chan *job, threads)}
}

// run calls do(worker, task) for every task and returns when all are done.
// Calls of one worker never overlap. A panic in any of them is the caller's.
func (p *pool) run(tasks int, do func(worker, task int)) {
	helpers := min(p.threads, tasks) - 1
	if helpers <= 0 {
		for i := range tasks {
			do(0, i)
		}
		return
	}
	p.start.Do(p.launch)
	j := &job{do: do, tasks: tasks}
	j.done.Add(helpers)
	for range helpers {
		p.jobs <- j
	}
	// Helpers read what the caller may free while it unwinds.
	defer j.rethrow()
	defer j.done.Wait()
	j.work(0)
}

func (p *pool) launch() {
	for worker := 1; worker < p.threads; worker++ {
		p.ended.Go(func() {
			// A weight that can't be read from its file is an error of one
			// call, not the end of the process.
			debug.SetPanicOnFault(true)
			for j := range p.jobs {
				j.help(worker)
			}
		})
	}
}

func (j *job) help(worker int) {
	defer j.done.Done()
	defer func() {
		if e := recover(); e != nil {
			j.fault.Store(&e)
		}
	}()
	j.work(worker)
}

func (j *job) work(worker int) {
	for {
		task := int(j.next.Add(1)) - 1
		if task >= j.tasks {
			return
		}
		j.do(worker, task)
	}
}

func (j *job) rethrow() {
	if e := j.fault.Load(); e != nil {
		panic(*e)
	}
}

// close ends the goroutines.
func (p *pool) close() {
	close(p.jobs)
	p.ended.Wait()
}
