package engine

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"calla/core/backend/backendtest"
)

// Memory that can't be had costs speed or one request, never a state, and never
// what comes after. That nothing is left open start sees at the end.
func TestMemoryThatCannotBeHad(t *testing.T) {
	system, user := turn(0, 100), turn(1, 3000)
	long := Request{Prompt: join(system, user, open), Keep: []int{len(system), len(system) + len(user)}}
	// It shares the system block alone, so that it branches.
	other := Request{Prompt: join(system, turn(2, 40), open), Keep: []int{len(system)}}
	for _, tt := range []struct {
		name   string
		op     backendtest.Op
		panics bool
		// of the request that meets the fault
		fails  bool
		cached int
		// of the first one, asked again when the fault is over
		again int
	}{
		{"no second state: the first goes", backendtest.NewState, false, false, len(system), len(system)},
		{"no copy: the first is continued", backendtest.CopyKV, false, false, len(system), len(system)},
		{"no snapshot: none is kept", backendtest.Save, false, false, len(system), len(system) + len(user)},
		{"no restore", backendtest.Restore, false, true, 0, 0},
		{"a panic of the copy", backendtest.CopyKV, true, true, 0, len(system) + len(user)},
		{"a panic of the restore", backendtest.Restore, true, true, 0, len(system) + len(user)},
		{"a panic of the snapshot", backendtest.Save, true, true, 0, len(system) + len(user)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var broken atomic.Bool
			d := &backendtest.Device{Fault: func(op backendtest.Op) error {
				if !broken.Load() || op != tt.op {
					return nil
				}
				if tt.panics {
					panic("no memory")
				}
				return errors.New("no memory")
			}}
			e := start(t, d, testOptions())
			generate(t, e, Request{Prompt: long.Prompt, Keep: long.Keep, MaxTokens: 2})
			broken.Store(true)
			if tt.fails {
				_, err := collect(submit(t, e, context.Background(), other.Prompt, 2))
				var device *DeviceError
				if !errors.As(err, &device) {
					t.Errorf("ended with %v, want a DeviceError", err)
				}
			} else if o := sameAsCold(t, e, other); o.CachedTokens != tt.cached {
				t.Errorf("reused %d tokens, want %d", o.CachedTokens, tt.cached)
			}
			broken.Store(false)
			if o := sameAsCold(t, e, long); o.CachedTokens != tt.again {
				t.Errorf("afterwards the first reused %d tokens, want %d", o.CachedTokens, tt.again)
			}
		})
	}
}

// The closed form counts on it: no more states and snapshots than it says are
// ever open.
func TestStatesAndSnapshotsAreBounded(t *testing.T) {
	for entries := range 4 {
		d := &backendtest.Device{}
		o := testOptions()
		o.CacheEntries = entries
		e := start(t, d, o)
		talks := [][]int32{turn(0, 9000), turn(1, 10), turn(2, 300), turn(3, 20), turn(4, 2000)}
		for i := range 60 {
			k := i * i % len(talks)
			talks[k] = join(talks[k], turn(i, 30))
			n := len(talks[k])
			generate(t, e, Request{Prompt: join(talks[k], open), Keep: []int{n / 2, n}, MaxTokens: 2})
			if i%7 == 0 {
				talks[k] = slices.Clip(talks[k][:n/2])
			}
			next := join(talks[k], turn(i+100, 40))
			e.Anticipate("", func() ([]int32, []int) { return next, []int{n} })
		}
		states := max(entries, 1)
		if c := d.Counts(); c.MostStates > states || c.MostSnapshots > entries*snapshotsPerEntry {
			t.Errorf("%d entries: %d states and %d snapshots were open at once, want at most %d and %d",
				entries, c.MostStates, c.MostSnapshots, states, entries*snapshotsPerEntry)
		}
	}
}

func TestEvictedConversationIsToldByItsKey(t *testing.T) {
	o := testOptions()
	o.CacheEntries = 1
	e := start(t, &backendtest.Device{}, o)
	system := turn(0, 100)
	ask := func(seed int, key string) outcome {
		return generate(t, e, Request{Prompt: join(system, turn(seed, 400), open), MaxTokens: 1, Keep: []int{len(system)}, CacheKey: key})
	}
	ask(1, "a")
	ask(2, "b")
	if got := ask(1, "a"); got.Miss == nil || *got.Miss != (CacheMiss{MissEvicted, got.CachedTokens}) {
		t.Errorf("a conversation that made room: reused %d, miss %+v; want evicted at that token", got.CachedTokens, got.Miss)
	}
	if got := ask(3, "c"); got.Miss != nil {
		t.Errorf("a new conversation with the same system block reports the miss %+v", *got.Miss)
	}
}
