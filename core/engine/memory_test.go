package engine

import (
	"errors"
	"fmt"
	"testing"

	"calla/core/backend/backendtest"
	"calla/core/checkpoint"
)

func TestMemoryForm(t *testing.T) {
	const gib = 1 << 30
	c := (&backendtest.Device{Vocab: 248320}).Config()
	c.Layers = 40
	o := testOptions()
	o.MaxSeq, o.CacheEntries = 32768, 2
	scratch := func(rows, tokens int) int64 { return int64(rows)*1000 + int64(tokens) }
	m := o.Memory(c, 19_508_787_456, scratch)
	want := Memory{
		Weights:   19_508_787_456,
		KV:        2 * 20_480 * 32768,
		Recurrent: (2*snapshotsPerEntry + 2) * (62_914_560 + 1_474_560),
		Scratch:   int64(o.PrefillChunk)*1000 + 32768,
	}
	if m != want {
		t.Errorf("Memory = %+v, want %+v", m, want)
	}
	for _, tt := range []struct {
		name   string
		budget int64
		fits   bool
	}{
		{"exactly enough", m.Total(), true},
		{"a byte more", m.Total() + 1, true},
		{"a byte less", m.Total() - 1, false},
		{"unknown", 0, true},
		{"not even the weights", 19 * gib / 2, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := o.Fit(c, 19_508_787_456, scratch, tt.budget)
			var over *MemoryError
			if errors.As(err, &over) == tt.fits {
				t.Fatalf("Fit: %v", err)
			}
			if over == nil || over.Largest == 0 {
				return
			}
			p := o
			p.MaxSeq = over.Largest
			if p.Memory(c, 19_508_787_456, scratch).Total() > tt.budget {
				t.Errorf("the largest that fits, %d, does not", over.Largest)
			}
			p.MaxSeq++
			if p.Memory(c, 19_508_787_456, scratch).Total() <= tt.budget {
				t.Errorf("%d would have fit too", p.MaxSeq)
			}
		})
	}
}

// The published model in machines of several sizes: what fits, and otherwise
// the largest context that does. The numbers come from the form as the design
// states it: weights of 19,508,787,456 bytes, 20,480 bytes a token and entry,
// 64,389,120 bytes a recurrent and conv state.
func TestMemoryTable(t *testing.T) {
	const (
		gib     = 1 << 30
		weights = 19_508_787_456
		token   = 20_480
		state   = 64_389_120
		scratch = 1_000_000_000
	)
	for _, tt := range []struct {
		gib, maxSeq, entries int
		fits                 bool
	}{
		{16, 1024, 0, false}, // not the weights
		{20, 1024, 0, true},
		{20, 1024, 2, true},
		{20, 8192, 2, false},
		{20, 32768, 2, false},
		{22, 32768, 2, true},
		{24, 65536, 2, true},
		{24, 131072, 2, false},
		{24, 131072, 1, true},
		{32, 262144, 2, true},
		{32, 262144, 4, false},
		{48, 262144, 4, true},
	} {
		t.Run(fmt.Sprintf("%d GiB, %d tokens, %d entries", tt.gib, tt.maxSeq, tt.entries), func(t *testing.T) {
			o := Options{MaxSeq: tt.maxSeq, PrefillChunk: DefaultPrefillChunk, CacheEntries: tt.entries}
			budget := int64(tt.gib) * gib
			states := int64(max(tt.entries, 1))
			fixed := int64(weights + scratch + (states+int64(6*tt.entries))*state)
			need := fixed + states*token*int64(tt.maxSeq)
			got, err := o.Fit(checkpoint.Published, weights, func(int, int) int64 { return scratch }, budget)
			if got.Total() != need {
				t.Fatalf("the form gives %d bytes, want %d", got.Total(), need)
			}
			if (err == nil) != tt.fits {
				t.Fatalf("Fit of %d bytes in %d: %v, want it to fit: %v", need, budget, err, tt.fits)
			}
			if tt.fits {
				return
			}
			var over *MemoryError
			if want := max(0, (budget-fixed)/(states*token)); !errors.As(err, &over) || int64(over.Largest) != want {
				t.Errorf("%v; want the largest to be %d", err, want)
			}
		})
	}
}
