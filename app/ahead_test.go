package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"calla/core/backend"
	"calla/core/engine"
	"calla/metal"
)

// onward leaves the choice alone, and makes the engine read each step's logits.
type onward struct{}

func (onward) Next([]int32) (engine.Choice, error) { return engine.Choice{}, nil }

// watched is a device that counts the calls that follow another.
type watched struct {
	backend.Device
	followed int // the worker's
}

func (d *watched) Load(ctx context.Context, b *backend.Binding, progress func(done, total int64)) (backend.Weights, error) {
	w, err := d.Device.Load(ctx, b, progress)
	return &watchedWeights{w, d}, err
}

type watchedWeights struct {
	backend.Weights
	device *watched
}

func (w *watchedWeights) Begin(s backend.State, c backend.Call) (backend.Pass, error) {
	if c.Follow {
		w.device.followed++
	}
	return w.Weights.Begin(s, c)
}

// On a device that hands its own token on, answers are those of a run that reads
// each token first, and the conversation goes on from the same cache.
func TestAnswersOfTwoStepsInFlight(t *testing.T) {
	library := filepath.Join("..", "build", "emulator", "libcalla-emulated.so")
	if _, err := os.Stat(library); err != nil {
		t.Skip("no emulated device: run scripts/emulator first")
	}
	type answer struct {
		tokens []int32
		result engine.Result
	}
	answers := func(guide engine.Guide) (out []answer) {
		d, err := metal.OpenEmulated(library)
		if err != nil {
			t.Fatal(err)
		}
		device := &watched{Device: metal.New(d, metal.Options{})}
		r := startDemo(t, demoSettings(), device, nil)
		for _, talk := range auditTalks()[:2] {
			prompt, err := r.Encode(talk.request)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time from the cache
				g, err := r.Submit(context.Background(), engine.Request{Prompt: prompt, MaxTokens: 12, LogProbs: engine.NoLogProbs, Guide: guide})
				if err != nil {
					t.Fatal(err)
				}
				var a answer
				for err == nil {
					var e engine.Event
					if e, err = g.Next(context.Background()); err == nil && e.Token >= 0 {
						a.tokens = append(a.tokens, e.Token)
					}
				}
				a.result = g.Result()
				a.result.Timing = engine.Timing{}
				out = append(out, a)
			}
		}
		if err := r.WaitLoaded(context.Background()); err != nil { // the worker is done
			t.Fatal(err)
		}
		if ahead := guide == nil; device.followed > 0 != ahead {
			t.Errorf("%d calls followed another, want some: %v", device.followed, ahead)
		}
		return out
	}
	want, got := answers(onward{}), answers(nil)
	for i := range want {
		if !slices.Equal(got[i].tokens, want[i].tokens) || got[i].result.StopToken != want[i].result.StopToken ||
			got[i].result.CachedTokens != want[i].result.CachedTokens || len(got[i].tokens) == 0 {
			t.Errorf("answer %d: %+v, want %+v", i, got[i], want[i])
		}
	}
}
