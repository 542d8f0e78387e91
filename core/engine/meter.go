package engine

import (
	"fmt"
	"sync"
	"time"

	"calla/core/model"
)

// meter keeps what Status shows. The worker writes, anyone reads.
type meter struct {
	mu       sync.Mutex
	state    State
	err      error
	load     [2]int64
	run      *Running
	decoding time.Time     // when the running generation's first token came
	start    time.Time     // when its prefill began
	asked    time.Time     // when the device last began or ended a step; zero at rest
	allowed  time.Duration // for the step; 0 is for ever
	last     *Finished
	totals   Totals
	counted  time.Time // up to which the running generation's work is in hour
	hour     history
	cache    CacheStatus
	weights  [2]int64
}

func (m *meter) status(now time.Time) Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := Status{
		State: m.state, LoadDone: m.load[0], LoadTotal: m.load[1], Last: m.last, Totals: m.totals,
		Hour: m.hour.hour(now), Cache: m.cache, WeightBytes: m.weights[0], MappedBytes: m.weights[1],
	}
	if m.err != nil {
		s.Error = m.err.Error()
	}
	if m.run != nil {
		r := *m.run
		r.PrefillTokensPerSecond, r.DecodeTokensPerSecond = m.rates(now)
		s.Running = &r
		if s.State == Ready {
			s.State = Busy
		}
	}
	s.StepAge = m.stepAge(now)
	if m.overdue(now) {
		s.State, s.Error = Stuck, fmt.Sprintf("the device has not answered for %v", s.StepAge.Round(time.Second))
	}
	return s
}

func (m *meter) stepAge(now time.Time) time.Duration {
	if m.asked.IsZero() {
		return 0
	}
	return now.Sub(m.asked)
}

func (m *meter) overdue(now time.Time) bool {
	return m.allowed > 0 && m.stepAge(now) >= m.allowed
}

// stuck reports whether the device has had its time.
func (m *meter) stuck() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.overdue(time.Now())
}

// expect notes that the device begins what may take so long.
func (m *meter) expect(allowed time.Duration) {
	m.update(func() { m.asked, m.allowed = time.Now(), allowed })
}

// rest notes that the device has nothing to do.
func (m *meter) rest() { m.update(func() { m.asked = time.Time{} }) }

// rates returns the running generation's tokens per second.
func (m *meter) rates(now time.Time) (prefill, decode float64) {
	end := now
	if !m.decoding.IsZero() {
		end = m.decoding
		decode = rate(m.run.Generated-1, now.Sub(m.decoding))
	}
	if !m.start.IsZero() {
		prefill = rate(m.run.Prefilled-m.run.Cached, end.Sub(m.start))
	}
	return prefill, decode
}

func rate(tokens int, d time.Duration) float64 {
	if tokens <= 0 || d <= 0 {
		return 0
	}
	return float64(tokens) / d.Seconds()
}

func (m *meter) update(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

func (m *meter) set(s State) {
	m.update(func() { m.state, m.err, m.load, m.weights, m.cache = s, nil, [2]int64{}, [2]int64{}, CacheStatus{} })
}

func (m *meter) fail(err error) { m.update(func() { m.state, m.err = Failed, err }) }

func (m *meter) loading(done, total int64) {
	m.update(func() { m.load = [2]int64{done, total} })
}

func (m *meter) loaded(x *model.Model) {
	all, mapped := x.Weights().Bytes()
	m.update(func() { m.state, m.err, m.weights = Ready, nil, [2]int64{all, mapped} })
}

// begin notes that a generation is on the device.
func (m *meter) begin() {
	m.update(func() {
		now := time.Now()
		m.run = &Running{Stage: StagePrefill, Since: now}
		m.start, m.decoding = time.Time{}, time.Time{}
		m.totals.Requests++
	})
}

func (m *meter) prefilling(r Result) {
	m.update(func() {
		m.start = time.Now()
		m.counted = m.start
		m.run.Stage, m.run.Prompt, m.run.Cached, m.run.Prefilled = StagePrefill, r.PromptTokens, r.CachedTokens, r.CachedTokens
	})
}

func (m *meter) prefilled(done int) {
	m.update(func() {
		if n := done - m.run.Prefilled; n > 0 {
			m.count(n)
		}
		m.run.Prefilled = done
	})
}

func (m *meter) generated(n int) {
	m.update(func() {
		if n == 1 {
			m.decoding = time.Now()
			m.counted = m.decoding
			m.run.Stage = StageDecoding
		} else {
			m.count(n - m.run.Generated)
		}
		m.run.Generated = n
	})
}

// count adds what the running generation's stage has done to the minute that
// runs.
func (m *meter) count(tokens int) {
	now := time.Now()
	minute := m.hour.at(now)
	work := &minute.Prefill
	if m.run.Stage == StageDecoding {
		work = &minute.Decode
	}
	work.add(tokens, now.Sub(m.counted))
	m.counted = now
}

// stepped notes that the device finished a call.
func (m *meter) stepped() { m.update(func() { m.totals.Steps++ }) }

// end notes that the generation left the device.
func (m *meter) end(r Result, err error) {
	m.update(func() {
		now := time.Now()
		if m.run.Stage == StageDecoding {
			m.count(0) // the step that chose no token was work too
		}
		m.totals.PromptTokens += int64(r.PromptTokens)
		m.totals.CachedTokens += int64(r.CachedTokens)
		m.totals.Tokens += int64(r.CompletionTokens)
		m.totals.PrefillSeconds += r.Timing.Prefill.Seconds()
		m.totals.DecodeSeconds += r.Timing.Decode.Seconds()
		if err != nil {
			m.totals.Failures++
		} else {
			f := &Finished{Prompt: r.PromptTokens, Cached: r.CachedTokens, Generated: r.CompletionTokens, At: now}
			f.PrefillTokensPerSecond, f.DecodeTokensPerSecond = m.rates(now)
			m.last = f
		}
		m.run = nil
	})
}

func (m *meter) cached(c *prefixCache) {
	s := CacheStatus{Entries: c.lru.Len(), Bytes: c.bytes(), Budget: c.budget}
	for _, e := range c.lru.Keys() {
		s.Snapshots += len(e.snaps)
		s.Tokens += len(e.tokens)
	}
	m.update(func() { m.cache = s })
}
