package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"calla/app/bench"
)

// benchDemo are the flags of a short calla bench of the demo model. The machine
// that runs the tests is busy, so nobody watches it.
func benchDemo() benchFlags {
	b := benchFlags{settings: demoSettings(), watch: func(int, float64) *bench.Watch { return &bench.Watch{} }}
	b.maxSeq, b.maxWait, b.json = 512, 10, true
	b.plan = bench.Plan{Prompts: []int{64, 128, 300}, Contexts: []int{64, 200, 300}, Tokens: bench.MinTokens, Runs: bench.MinRuns}
	return b
}

func TestBenchMeasuresTheDemo(t *testing.T) {
	dir := t.TempDir()
	b := benchDemo()
	b.csv, b.picture = filepath.Join(dir, "a.csv"), filepath.Join(dir, "a.svg")
	var out bytes.Buffer
	if err := b.run(context.Background(), &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	var r bench.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if r.Model != "calla-tiny" || r.MaxSeq != 512 || r.Load <= 0 || r.Bandwidth <= 0 || r.Peak < 9<<20 {
		t.Errorf("report %+v", r)
	}
	if r.DecodeFit == nil || r.PrefillFit == nil || len(r.Missing) > 0 {
		t.Errorf("fits %v and %v, missing %v", r.DecodeFit, r.PrefillFit, r.Missing)
	}
	var lengths []int
	for _, x := range r.Points {
		lengths = append(lengths, x.Tokens)
		if x.Refused != "" || len(x.Runs) != bench.MinRuns || len(x.Rejected) > 0 {
			t.Errorf("%d tokens: %d runs, rejected %v, refused %q", x.Tokens, len(x.Runs), x.Rejected, x.Refused)
		}
		for _, s := range x.Runs {
			if s.Prompt != x.Tokens || s.Cached != 0 || s.Generated != bench.MinTokens || s.FirstToken < s.Prefill || s.Decode <= 0 {
				t.Errorf("%d tokens: run %+v", x.Tokens, s)
			}
		}
		if isContext := x.Tokens != 128; (x.Decode != nil) != isContext || (x.Share > 0) != isContext {
			t.Errorf("%d tokens: decode %v, share %v", x.Tokens, x.Decode, x.Share)
		}
		if (x.Prefill != nil) != (x.Tokens != 200) {
			t.Errorf("%d tokens: prefill %v", x.Tokens, x.Prefill)
		}
	}
	if want := []int{64, 128, 200, 300}; !slices.Equal(lengths, want) {
		t.Errorf("lengths %v, want %v", lengths, want)
	}
	table, err := os.Open(b.csv)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	if rows, err := csv.NewReader(table).ReadAll(); err != nil || len(rows) != 5 {
		t.Errorf("%d rows, %v, want 5", len(rows), err)
	}
	if svg, err := os.ReadFile(b.picture); err != nil || !bytes.Contains(svg, []byte("<svg")) {
		t.Errorf("a picture of %d bytes, %v", len(svg), err)
	}
}

// stopAt ends a measurement when it says that a length comes.
type stopAt struct {
	line string
	stop context.CancelFunc
}

func (s stopAt) Write(p []byte) (int, error) {
	if strings.HasPrefix(string(p), s.line) {
		s.stop()
	}
	return len(p), nil
}

func TestBenchInterrupted(t *testing.T) {
	b := benchDemo()
	b.json = false
	ctx, cancel := context.WithCancel(context.Background())
	var out bytes.Buffer
	err := b.run(ctx, &out, stopAt{"200 tokens", cancel})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("run = %v, want that it was canceled", err)
	}
	for _, want := range []string{"\n128 ", "bandwidth not measured: it was stopped", "missing: 200 tokens: 0 of 5 runs", "missing: 300 tokens: 0 of 5 runs"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, out.String())
		}
	}
}

func TestBenchAgainstAnotherServer(t *testing.T) {
	for _, chat := range []bool{false, true} {
		name := "completions"
		if chat {
			name = "chat"
		}
		t.Run(name, func(t *testing.T) {
			s := demoSettings()
			s.maxSeq = 512
			b := benchDemo()
			b.peer = benchPeer{url: serveFor(t, serveFlags{settings: s, host: "localhost"}), chat: chat}
			// The demo model may not feel like counting: decode is left out.
			b.plan.Prompts, b.plan.Contexts = []int{200, 300}, nil
			var out bytes.Buffer
			if err := b.run(context.Background(), &out, io.Discard); err != nil {
				t.Fatal(err)
			}
			var c bench.Comparison
			if err := json.Unmarshal(out.Bytes(), &c); err != nil {
				t.Fatal(err)
			}
			if len(c.Pairs) != 2 || len(c.Unknown) > 0 || c.Theirs.URL != b.peer.url || c.Ours.URL == c.Theirs.URL {
				t.Fatalf("comparison %+v", c)
			}
			for _, x := range c.Pairs {
				if x.Refused != "" || x.Note != "" || x.Prefill == nil || x.Prefill.Median <= 0 || len(x.Theirs.Runs) != bench.MinRuns {
					t.Errorf("%d tokens: %+v", x.Tokens, x)
				}
			}
		})
	}
}

// Both sides may be servers that run already.
func TestBenchOfRunningServers(t *testing.T) {
	url := serveFor(t, serveFlags{settings: demoSettings(), host: "localhost"})
	b := benchDemo()
	b.peer = benchPeer{url: url, ours: url}
	b.maxSeq, b.plan.Prompts, b.plan.Contexts = 0, []int{200}, nil
	var out bytes.Buffer
	if err := b.run(context.Background(), &out, io.Discard); !errors.Is(err, errNothing) || status(err) != 1 {
		t.Fatalf("run = %v, want %v", err, errNothing)
	}
	if !strings.Contains(out.String(), "came from a cache") {
		t.Errorf("the same server on both sides has the second's text cached, and it is not said:\n%s", out.String())
	}
}

func TestBenchRefusesFlags(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*benchFlags)
		want   string
	}{
		{"a picture of no format", func(b *benchFlags) { b.picture = "a.gif" }, "--picture is"},
		{"a folder that is not there", func(b *benchFlags) { b.csv = filepath.Join("no", "such", "a.csv") }, "its folder does not exist"},
		{"a folder in place of a file", func(b *benchFlags) { b.csv = os.TempDir() }, "is a directory"},
		{"one file for both", func(b *benchFlags) { b.csv, b.picture = "a.svg", filepath.Join("..", "app", "a.svg") }, "want two files"},
		{"a negative patience", func(b *benchFlags) { b.peer.url, b.peer.patience = "http://127.0.0.1:1", -1 }, "--patience is"},
		{"endless runs", func(b *benchFlags) { b.plan.Runs = 1 << 30 }, "want at most 1000"},
		{"an impossible wait", func(b *benchFlags) { b.maxWait = 101 }, "--max-wait is 101"},
		{"another server's model without its address", func(b *benchFlags) { b.peer.model = "m" }, "--against-model without --against"},
		{"chat without another server", func(b *benchFlags) { b.peer.chat = true }, "--chat without --against"},
		{"too few runs", func(b *benchFlags) { b.plan.Runs = 1 }, "runs are 1"},
		{"a length beyond the context", func(b *benchFlags) { b.plan.Prompts = []int{600} }, "prompts has 600"},
		{"no address", func(b *benchFlags) { b.peer.url = "localhost" }, "want an address"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := benchDemo()
			tt.change(&b)
			err := b.run(context.Background(), io.Discard, io.Discard)
			if err == nil || !strings.Contains(err.Error(), tt.want) || status(err) != 64 {
				t.Errorf("run = %v with status %d, want %q with 64", err, status(err), tt.want)
			}
		})
	}
}

func TestBenchRefusesWordsForLengths(t *testing.T) {
	for _, flag := range []string{"--prompts", "--contexts"} {
		cmd := newRoot()
		cmd.SetArgs([]string{"bench", flag, "64,abc"})
		err := cmd.Execute()
		if err == nil || !strings.Contains(err.Error(), `"abc" is no length, want whole numbers`) || status(err) != 64 {
			t.Errorf("%s 64,abc = %v with status %d", flag, err, status(err))
		}
	}
	var got []int
	l := lengths{&got}
	if err := errors.Join(l.Set("64, 128"), l.Set("300")); err != nil || !slices.Equal(got, []int{64, 128, 300}) || l.String() != "64,128,300" {
		t.Errorf("lengths %v, %v", got, err)
	}
}

// An interrupt before anything was measured leaves the files of the last time.
func TestBenchInterruptedAtOnceLeavesFiles(t *testing.T) {
	b := benchDemo()
	b.csv = filepath.Join(t.TempDir(), "a.csv")
	if err := os.WriteFile(b.csv, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	err := b.run(ctx, io.Discard, stopAt{"64 tokens", cancel})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("run = %v, want that it was canceled", err)
	}
	if got, err := os.ReadFile(b.csv); string(got) != "old" {
		t.Errorf("the file has %q, %v, want what it had", got, err)
	}
}

// Answers of the demo model go on to the last token, whatever it feels like.
func TestOurAnswersGoOn(t *testing.T) {
	url := serveFor(t, serveFlags{settings: demoSettings(), host: "localhost"})
	for _, chat := range []bool{false, true} {
		s, err := bench.NewServer(context.Background(), "ours", url, "", "", chat)
		if err != nil {
			t.Fatal(err)
		}
		if by, err := s.GoOn(context.Background()); by != "logit_bias" || err != nil {
			t.Fatalf("GoOn = %q, %v", by, err)
		}
		for i := range 8 {
			text := strings.Repeat("one two ", i+1)
			if got, err := s.Ask(context.Background(), text, 40); err != nil || got.Generated != 40 {
				t.Errorf("%q is answered with %d tokens, %v, want 40", text, got.Generated, err)
			}
		}
	}
}
