package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"calla/app/menu"
	"calla/app/prefs"
	"calla/app/supervise"
	"calla/core/server"
)

// startEngine starts this program as the engine.
func (a *app) startEngine(s menu.Settings) {
	l := supervise.Launch{Path: a.program, Args: a.engineArgs(s), Env: foreignEnvironment(os.Environ())}
	if s.Key {
		key, err := a.key()
		if err != nil {
			go a.engineEvent(supervise.Ended{Cause: supervise.Usage, Reason: err.Error()})
			return
		}
		l.Key = key
	}
	if err := a.engine.Start(l); err != nil {
		a.log.Error("engine: start", "error", err)
	}
}

// engineArgs are the settings as flags of calla serve.
func (a *app) engineArgs(s menu.Settings) []string {
	model := "demo"
	if !s.Demo {
		model = a.files.folder()
	}
	args := []string{"serve", "--supervised", "--model=" + model, fmt.Sprintf("--max-seq=%d", s.MaxSeq)}
	if a.foreign && !s.Demo {
		args = append(args, "--any-size")
	}
	return append(args, otherArgs(a.prefs.get())...)
}

// otherArgs are the flags of what needs no thought.
func otherArgs(v prefs.Values) (args []string) {
	for _, key := range []string{"cache-entries", "idle-unload", "prefill-chunk", "queue", "backend", "host", "port", "key-file", "open-models", "allow-host", "allow-origin"} {
		if value := v.Get(key); value != prefs.Must(key).Default {
			args = append(args, "--"+key+"="+value)
		}
	}
	return args
}

// foreignEnvironment is an environment without Calla's variables: what they
// say, the flags of the engine say already.
func foreignEnvironment(env []string) []string {
	var out []string
	for _, e := range env {
		if !strings.HasPrefix(e, "CALLA_") {
			out = append(out, e)
		}
	}
	return out
}

// engineEvent translates what the supervisor tells.
func (a *app) engineEvent(e supervise.Event) {
	now := time.Now()
	switch e := e.(type) {
	case supervise.Listening:
		a.send(menu.Listening{URL: e.URL})
	case supervise.Observed:
		var s server.Status
		if err := json.Unmarshal(e.Body, &s); err != nil {
			a.log.Error("engine: status", "error", err)
			return
		}
		a.send(menu.Observed{Status: reading(s)})
	case supervise.Crashed:
		a.log.Error("engine: crashed", "reason", e.Reason, "try", e.Try)
		a.send(menu.Crashed{At: now, Reason: tidy(e.Reason), Try: e.Try, Of: e.Of})
	case supervise.Relaunched:
		a.send(menu.Relaunched{})
	case supervise.Ended:
		if e.Cause != supervise.Asked {
			a.log.Error("engine: ended", "cause", e.Cause, "reason", e.Reason)
		}
		a.send(menu.Ended{At: now, Cause: menu.Cause(e.Cause), Reason: tidy(e.Reason)})
	}
}

// tidy takes the name of the package from a reason: people have no use for it.
func tidy(reason string) string {
	for _, p := range []string{"server: ", "engine: ", "checkpoint: ", "backend: ", "supervise: "} {
		reason = strings.TrimPrefix(reason, p)
	}
	return reason
}

// reading is the engine's status as the menu shows it.
func reading(s server.Status) menu.Status {
	out := menu.Status{
		State: menu.Engine(s.State), Reason: s.Reason,
		MemoryUsed: s.Memory.Used, MemoryNeeded: s.Memory.Needed,
		PrefillNow: s.Throughput.Now.Prefill, DecodeNow: s.Throughput.Now.Decode,
		QueueRunning: s.Queue.Running, QueueWaiting: s.Queue.Waiting,
		Hot: s.Throughput.Thermal == "serious" || s.Throughput.Thermal == "critical", Saving: s.Throughput.LowPower,
		Errors: errorText(s.Errors), Receipt: receiptText(s.Receipt),
	}
	if p := s.Progress; p != nil {
		out.Loaded, out.ToLoad = p.Done, p.Total
	}
	if l := s.Throughput.Last; l != nil {
		out.Answered, out.PrefillLast, out.DecodeLast = true, l.Rates.Prefill, l.Rates.Decode
	}
	return out
}

// receiptText says in a line which files the engine runs.
func receiptText(r server.Receipt) string {
	_, digest, _ := strings.Cut(r.Digest, ":")
	digest = ", digest " + digest[:min(12, len(digest))]
	switch {
	case r.Source == server.BuiltIn:
		return "Runs the built-in demo model" + digest
	case r.Source == server.Unverified:
		return "Runs files that were never verified"
	case r.VerifiedAt == nil:
		return "Runs verified files" + digest
	}
	return "Runs files verified on " + r.VerifiedAt.Local().Format("2 January 2006") + digest
}

// errorText is a line for each error.
func errorText(errors []server.ErrorSummary) string {
	var b strings.Builder
	for _, e := range errors {
		fmt.Fprintf(&b, "%s  %s", e.At.Local().Format("15:04"), e.Message)
		if e.Count > 1 {
			fmt.Fprintf(&b, " (%d times)", e.Count)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
