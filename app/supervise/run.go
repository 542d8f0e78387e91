package supervise

import (
	"runtime"
	"time"
)

// run is one wish to have an engine, over any number of children.
type run struct {
	*Engine
	launch Launch
	stops  chan time.Duration
	starts chan Launch
}

// loop starts children until one is not to be followed by another.
func (r *run) loop(done chan struct{}) {
	// Linux kills a child when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	end := r.children()
	close(done)
	r.tell(end)
}

func (r *run) children() Ended {
	tries := 0
	for {
		began := time.Now()
		end := r.once()
		if end.Cause != Crash {
			return end
		}
		if time.Since(began) >= r.policy.Healthy {
			tries = 0
		}
		if tries >= len(r.policy.Waits) {
			return end
		}
		tries++
		r.tell(Crashed{end.Reason, tries, len(r.policy.Waits)})
		again, stopped := r.wait(r.policy.Waits[tries-1])
		switch {
		case stopped:
			return Ended{}
		case again:
			tries = 0
		default:
			r.tell(Relaunched{})
		}
	}
}

// wait tells whether somebody asked for a start or for a stop meanwhile.
func (r *run) wait(d time.Duration) (again, stopped bool) {
	r.pause(true)
	defer r.pause(false)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		r.pause(false)
	case <-r.stops:
		return false, true
	case r.launch = <-r.starts:
		return true, false
	}
	select {
	case r.launch = <-r.starts: // in the last moment
		return true, false
	default:
		return false, false
	}
}

func (r *run) pause(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = on
}

// once runs one child to its end.
func (r *run) once() Ended {
	c, err := start(r.launch, r.log)
	if err != nil {
		return Ended{Crash, err.Error()}
	}
	defer c.close()
	w := watch{run: r, child: c, bind: time.NewTimer(r.policy.Bind), poll: time.NewTicker(r.policy.Poll)}
	defer w.bind.Stop()
	defer w.poll.Stop()
	return w.loop()
}

// watch is the life of one child as its parent sees it.
type watch struct {
	*run
	child *child
	bind  *time.Timer
	poll  *time.Ticker

	reading bool // a request for the status is on its way
	misses  int  // in a row
	hangs   int  // in a row

	asked bool
	fault string // why the child is being ended, where nobody asked for it
	force <-chan time.Time
}

func (w *watch) loop() Ended {
	readings := make(chan reading, 1)
	for {
		select {
		case url := <-w.child.listening:
			w.bind.Stop()
			w.child.url = url
			w.tell(Listening{url})
			w.read(readings)
		case <-w.bind.C:
			w.end("the engine did not bind its address in time")
		case <-w.poll.C:
			w.read(readings)
		case got := <-readings:
			w.reading = false
			w.judge(got)
		case grace := <-w.stops:
			w.stop(grace)
		case <-w.force:
			w.child.kill()
		case state := <-w.child.exited:
			return w.verdict(state)
		}
	}
}

// stop asks the child to leave, and sees to it.
func (w *watch) stop(grace time.Duration) {
	w.asked = true
	w.child.terminate()
	w.force = time.After(grace)
}

// end ends a child that is no good.
func (w *watch) end(fault string) {
	if w.asked || w.fault != "" {
		return
	}
	w.fault = fault
	w.child.terminate()
	w.force = time.After(w.policy.Grace)
}

func (w *watch) read(to chan<- reading) {
	if w.child.url == "" || w.reading || w.asked {
		return
	}
	w.reading = true
	url, nonce, key := w.child.url, w.child.nonce, w.launch.Key
	go func() { to <- readStatus(url, nonce, key) }()
}

// judge counts what is wrong with the child by its own word.
func (w *watch) judge(got reading) {
	if w.asked || w.fault != "" {
		return
	}
	if got.err != nil {
		if w.misses++; w.misses > w.policy.Misses {
			w.end("the engine does not answer: " + got.err.Error())
		}
		return
	}
	w.misses = 0
	if got.hangs {
		if w.hangs++; w.hangs > w.policy.Hangs {
			w.end("the engine hangs: " + got.reason)
			return
		}
	} else {
		w.hangs = 0
	}
	w.tell(Observed{got.body})
}

func (w *watch) verdict(s exit) Ended {
	switch {
	case w.asked:
		return Ended{}
	case w.fault != "":
		return Ended{Crash, w.fault}
	}
	return s.explain()
}
