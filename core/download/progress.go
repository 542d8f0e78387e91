package download

import (
	"sync"
	"time"
)

// Stage is what a pull or verification is about.
type Stage string

const (
	StageCheck Stage = "checking" // hashing what is on the disk
	StageAsk   Stage = "asking"   // whether the server has every file, of its size
	StageFetch Stage = "fetching"
	StageDone  Stage = "done"
)

// Event says how far things are.
type Event struct {
	Stage  Stage         `json:"stage"`
	Done   int64         `json:"done"`           // bytes: checked, or on the disk of all that is wanted
	Total  int64         `json:"total"`          // bytes
	Rate   float64       `json:"rate,omitempty"` // bytes a second, over the last seconds
	Left   time.Duration `json:"-"`              // 0: not known
	Paused bool          `json:"paused,omitempty"`
	Note   string        `json:"note,omitempty"` // what people may want to know, such as why there is a wait
}

const (
	// every is the time between two events.
	every = 250 * time.Millisecond
	// recent is what a rate is taken over.
	recent = 10 * time.Second
	// longest bounds the time left; what takes longer is not known.
	longest = 100 * time.Hour
)

// meter counts bytes and tells of them. Its clock may jump: a rate begins anew
// then.
type meter struct {
	now    func() time.Time
	paused func() bool

	telling sync.Mutex // held while tell runs, so that events come in order
	tell    func(Event)

	mu      sync.Mutex
	event   Event
	samples []sample
}

type sample struct {
	at   time.Time
	done int64
}

// begin starts a stage.
func (m *meter) begin(s Stage, done, total int64) {
	m.mu.Lock()
	m.event = Event{Stage: s, Done: done, Total: total}
	m.samples = nil
	m.mu.Unlock()
	m.report("")
}

// add counts bytes, from any goroutine.
func (m *meter) add(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.event.Done += n
}

// want makes the stage longer.
func (m *meter) want(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.event.Total += n
}

// report tells of where things are. A note goes with one event alone.
func (m *meter) report(note string) {
	m.telling.Lock()
	defer m.telling.Unlock()
	m.mu.Lock()
	m.sample()
	e := m.event
	e.Note = note
	e.Paused = m.paused()
	e.Rate, e.Left = m.rate()
	m.mu.Unlock()
	m.tell(e)
}

// sample notes how much there is now, and forgets what is no longer recent.
func (m *meter) sample() {
	s := sample{m.now(), m.event.Done}
	if n := len(m.samples); n > 0 {
		if gap := s.at.Sub(m.samples[n-1].at); gap < 0 || gap > recent {
			m.samples = nil // the clock jumped, or the machine slept
		}
	}
	m.samples = append(m.samples, s)
	for s.at.Sub(m.samples[0].at) > recent {
		m.samples = m.samples[1:]
	}
}

func (m *meter) rate() (rate float64, left time.Duration) {
	first, last := m.samples[0], m.samples[len(m.samples)-1]
	t := last.at.Sub(first.at)
	if t < every || last.done <= first.done {
		return 0, 0
	}
	rate = float64(last.done-first.done) / t.Seconds()
	seconds := float64(m.event.Total-m.event.Done) / rate
	if seconds <= 0 || seconds > longest.Seconds() {
		return rate, 0
	}
	return rate, time.Duration(seconds * float64(time.Second))
}

// run reports regularly until stop is called, which reports once more.
func (m *meter) run(each func()) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				each()
				m.report("")
			case <-quit:
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}
