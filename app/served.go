package main

import (
	"time"

	"calla/app/power"
	"calla/bundle/demo"
	"calla/core/checkpoint"
	"calla/core/engine"
	"calla/core/server"
)

// The published model's names: the one that is listed and those by which
// clients may ask for it too.
const publishedID = "qwen3.6-35b-a3b"

var publishedAliases = []string{"calla", "Qwen3.6-35B-A3B", "Qwen/Qwen3.6-35B-A3B", "mlx-community/Qwen3.6-35B-A3B-4bit"}

// served says what the server offers.
func (o *opened) served(e engine.Options) server.Model {
	g := o.checkpoint.Generation()
	m := server.Model{
		ID: o.checkpoint.Name(), OwnedBy: "local", Created: time.Now(),
		Aliases: []string{"calla"}, Context: e.MaxSeq, Vocab: e.Vocab,
	}
	switch {
	case o.demo:
		m.ID, m.Aliases = demo.Name, append(m.Aliases, "demo")
	case o.checkpoint.Config() == checkpoint.Published:
		m.ID, m.Aliases = publishedID, publishedAliases
	}
	if g.DoSample {
		m.Thinking = engine.Sampling{Temperature: g.Temperature, TopK: g.TopK, TopP: g.TopP}
	}
	return m
}

var states = map[engine.State]server.State{
	engine.Loading:  server.StateLoading,
	engine.Ready:    server.StateReady,
	engine.Busy:     server.StateBusy,
	engine.Unloaded: server.StateUnloaded,
	engine.Failed:   server.StateFailed,
	engine.Stuck:    server.StateStuck,
	engine.Stopped:  server.StateStopping,
}

// engineStatus translates the engine's status for the server.
func engineStatus(s engine.Status, c power.Condition, need engine.Memory, budget int64) server.EngineStatus {
	out := server.EngineStatus{
		State:        states[s.State],
		Reason:       s.Error,
		Waiting:      s.Queue,
		Capacity:     s.QueueCap,
		MemoryUsed:   s.WeightBytes + s.Cache.Bytes,
		MemoryNeeded: need.Total(),
		MemoryLimit:  budget,
		CacheEntries: s.Cache.Entries,
		CacheBytes:   s.Cache.Bytes,
		LastStep:     s.StepAge,
		Thermal:      string(c.Thermal),
		LowPower:     c.LowPower,
		Hour:         s.Hour,
	}
	if s.State == engine.Loading {
		out.Progress = engine.Progress{Stage: engine.StageLoading, Done: s.LoadDone, Total: s.LoadTotal}
	}
	if r := s.Running; r != nil {
		out.Running = 1
		out.PrefillRate, out.DecodeRate = r.PrefillTokensPerSecond, r.DecodeTokensPerSecond
	}
	return out
}
