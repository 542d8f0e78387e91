package main

import (
	"fmt"
	"strconv"
	"sync"

	"calla/app/menu"
	"calla/app/prefs"
	"calla/bundle/demo"
	"calla/core/checkpoint"
	"calla/core/engine"
)

// choices are the context lengths of a model on this machine. They are computed
// by the form by which the engine refuses what does not fit.
type choices struct {
	mu   sync.Mutex
	from string // what the list was made from
	list []menu.Choice
}

// memory is what the machine has, 0 where unknown.
func (c *choices) memory() int64 {
	dev, err := (&settings{backend: "auto"}).openDevice()
	if err != nil {
		return 0
	}
	defer dev.Close()
	_, total := dev.Memory()
	return total
}

// shape is the model that the engine would run: its configuration and the bytes
// of its weights.
func (c *choices) shape(a *app, v prefs.Values) (checkpoint.Config, int64) {
	s := settings{model: "demo"}
	switch {
	case v.Get("demo") == "true":
		return demo.Config, demo.Config.Bytes()
	case !a.foreign:
		return checkpoint.Published, checkpoint.Published.Bytes()
	}
	s.model, s.anySize = a.files.folder(), true
	opened, err := s.openCheckpoint()
	if err != nil { // not there yet
		return checkpoint.Published, checkpoint.Published.Bytes()
	}
	defer opened.Close()
	return opened.Config(), opened.Bytes()
}

// maxSeq is the context that the engine is started with: of what is set no more
// than the model has.
func (c *choices) maxSeq(a *app, v prefs.Values) int {
	config, _ := c.shape(a, v)
	n, _ := strconv.Atoi(v.Get("max-seq")) // checked
	if n == 0 {
		n = engine.DefaultMaxSeq
	}
	return min(n, config.MaxPositions)
}

// of returns the choices for preferences.
func (c *choices) of(a *app, v prefs.Values) []menu.Choice {
	config, weights := c.shape(a, v)
	o := engine.Options{}
	o.CacheEntries, _ = strconv.Atoi(v.Get("cache-entries")) // checked, as the next
	o.PrefillChunk, _ = strconv.Atoi(v.Get("prefill-chunk"))
	backend := v.Get("backend")
	c.mu.Lock()
	defer c.mu.Unlock()
	from := fmt.Sprint(config, weights, o.CacheEntries, o.PrefillChunk, backend)
	if from != c.from {
		c.from, c.list = from, contexts(config, weights, o, backend)
	}
	return c.list
}

func contexts(config checkpoint.Config, weights int64, o engine.Options, backend string) []menu.Choice {
	dev, err := (&settings{backend: backend}).openDevice()
	if err != nil {
		return nil // the engine will say so
	}
	defer dev.Close()
	budget, _ := dev.Memory()
	scratch := func(rows, maxTokens int) int64 { return dev.ScratchBytes(config, rows, maxTokens) }
	var out []menu.Choice
	for _, n := range menu.MaxSeqs {
		choice := menu.Choice{Tokens: n}
		o.MaxSeq = n
		if n > config.MaxPositions {
			choice.Why = fmt.Sprintf("the model has %d", config.MaxPositions)
		} else {
			need, err := o.Fit(config, weights, scratch, budget)
			choice.Bytes = need.Total()
			if err != nil {
				choice.Why = "more than the " + bytesText(budget) + " there are"
			}
		}
		out = append(out, choice)
	}
	return out
}
