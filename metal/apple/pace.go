package apple

import (
	"time"

	"calla/metal"
)

const (
	// share is how long a command buffer may take by our estimate: while it runs, a
	// desktop that shares the GPU draws little, and after some seconds the system
	// ends it.
	share = 100 * time.Millisecond
	// mostCommands is how many command buffers a list becomes at most.
	mostCommands = 32
	// firstRate is the estimate of a threadgroup's time before any was measured:
	// that of a slow GPU.
	firstRate = time.Microsecond
)

// pace estimates how long dispatches take, from how long others took: by
// threadgroup, since that is what a GPU works through. It is a guess within a
// factor of a few, for a limit that has one to spare.
type pace struct{ rate float64 } // seconds a threadgroup

// learn takes the time of a command buffer of so many threadgroups. A slower one
// counts at once, a faster one by and by.
func (p *pace) learn(threadgroups, seconds float64) {
	if threadgroups == 0 || !(seconds > 0) {
		return
	}
	p.rate = max(seconds/threadgroups, p.estimate()/2)
}

func (p *pace) estimate() float64 {
	if p.rate == 0 {
		return firstRate.Seconds()
	}
	return p.rate
}

func threadgroups(d *metal.Dispatch) float64 {
	return float64(d.Grid[0]) * float64(d.Grid[1]) * float64(d.Grid[2])
}

// cut shares a list out in command buffers that each take about as long as they
// may. It cuts before barriers alone, where nothing overlaps anyway.
func (p *pace) cut(l *metal.List) []span {
	rate, total := p.estimate(), 0.0
	for i := range l.Dispatches {
		total += threadgroups(&l.Dispatches[i]) * rate
	}
	// Two command buffers in a row take more than the limit, so there are at most
	// twice as many as it goes into the total, and one.
	limit := max(share.Seconds(), total/(mostCommands/2-1))
	spans, taken := []span{{command: true}}, 0.0
	for i := range l.Dispatches {
		d := &l.Dispatches[i]
		time := threadgroups(d) * rate
		last := &spans[len(spans)-1]
		if taken+time > limit && d.Barrier && i > last.first {
			spans, taken = append(spans, span{first: i, command: true}), 0
			last = &spans[len(spans)-1]
		}
		last.end = i + 1
		taken += time
	}
	return spans
}

// apart gives each dispatch an encoder of its own, so that an error tells them
// apart.
func apart(spans []span) []span {
	var out []span
	for _, s := range spans {
		for i := s.first; i < s.end; i++ {
			out = append(out, span{first: i, end: i + 1, command: s.command && i == s.first})
		}
	}
	return out
}
