package conform

import (
	"fmt"
	"testing"
)

// Phases proves that prefill and decode compute the same function, also where a
// context is long: decode's results at each position are near those of one
// prefill over all.
func Phases(t *testing.T, s Subject) {
	device, near := s.New, bound{rms: 0.06} // as two runs that round at different points
	if s.Precise != nil {
		device, near = s.Precise, bound{abs: 2e-4}
	}
	rec := &recorder{}
	m := Load(t, device(t, rec.observe), Tiny(t))
	c := m.Config()
	const length = 1030
	p := prompt{make([]int32, length), []int{0, 700}}
	r := newSource(length)
	for i := range p.tokens {
		p.tokens[i] = r.Int32N(int32(c.Vocab))
	}
	rec.reset()
	newRun(t, m).prefill(p, length)
	want := rec.get(c.Layers-1, "residual")

	for _, span := range []struct {
		name     string
		from, to int
	}{
		{"from the start", 0, 70},
		{"in the middle", 500, 530},
		{"past a thousand", 1010, length},
	} {
		t.Run(span.name, func(t *testing.T) {
			r := newRun(t, m)
			if span.from > 0 {
				r.prefill(prompt{p.tokens[:span.from], p.segmentsOf(0, span.from)}, span.from)
			}
			for at := span.from; at < span.to; at++ {
				rec.reset()
				if _, err := m.Decode(r.state, p.tokens[at]); err != nil {
					t.Fatal(err)
				}
				near.check(t, fmt.Sprintf("position %d", at), rec.get(c.Layers-1, "residual"), want[at*c.Hidden:][:c.Hidden])
			}
		})
	}
}
