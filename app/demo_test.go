package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"calla/core/engine"
)

// expectation is one case of expected.json: what mlx-lm makes of the demo model.
type expectation struct {
	Name      string            `json:"name"`
	Messages  json.RawMessage   `json:"messages"`
	Tools     []json.RawMessage `json:"tools"`
	Thinking  bool              `json:"enable_thinking"`
	PromptIDs []int32           `json:"prompt_ids"`
	OutputIDs []int32           `json:"output_ids"`
	Output    string            `json:"output"`
	MinMargin float64           `json:"min_margin"`
}

// emulatorLibrary is where scripts/emulator puts the emulated device.
var emulatorLibrary = filepath.Join("..", "build", "emulator", "libcalla-emulated.so")

// nearTie is the margin below which rounding may choose another token.
const nearTie = 0.05

func expectations(t *testing.T) []expectation {
	t.Helper()
	b, err := os.ReadFile("../core/conform/testdata/demo/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var f struct{ Cases []expectation }
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatal(err)
	}
	if len(f.Cases) < 50 {
		t.Fatalf("expected.json has %d cases, want at least 50", len(f.Cases))
	}
	return f.Cases
}

// demoSettings are those of a calla that was given no flags.
func demoSettings() settings {
	return settings{
		model: "demo", backend: "auto",
		prefillChunk: engine.DefaultPrefillChunk, cacheEntries: engine.DefaultCacheEntries, queue: engine.DefaultQueue,
	}
}

// calla eval gives the tokens that mlx-lm gives, on the processor and, where
// scripts/emulator has built it, on the emulated device.
func TestEvalAgreesWithMLX(t *testing.T) {
	for _, name := range []string{"cpu", "emulated"} {
		t.Run(name, func(t *testing.T) {
			s := demoSettings()
			s.backend, s.emulator = name, emulatorLibrary
			if _, err := os.Stat(s.emulator); name == "emulated" && err != nil {
				t.Skip("the emulated device is not built: run scripts/emulator")
			}
			longest := math.MaxInt
			if name == "emulated" {
				longest = emulatedTokens
			}
			evalAgrees(t, s, longest)
		})
	}
}

// emulatedTokens bounds the cases that the emulated device is asked: it takes
// some 30 ms a token.
const emulatedTokens = 45

// evalAgrees runs the cases of at most longest tokens.
func evalAgrees(t *testing.T, s settings, longest int) {
	for _, c := range expectations(t) {
		if len(c.PromptIDs)+len(c.OutputIDs) > longest {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			cmd := newEval()
			cmd.SetContext(context.Background())
			e, err := evaluate(cmd, &s, c.PromptIDs, len(c.OutputIDs))
			if err != nil {
				t.Fatal(err)
			}
			compareTokens(t, e, c)
		})
	}
}

// compareTokens wants the case's tokens. A case that has a near-tie may differ
// from its first one on; where it does is printed.
func compareTokens(t *testing.T, e *evaluation, c expectation) {
	t.Helper()
	for i, id := range e.Tokens {
		if id == c.OutputIDs[i] {
			continue
		}
		margin := e.Top[i][0].logit - e.Top[i][1].logit
		if c.MinMargin < nearTie && margin < nearTie && e.Top[i][1].id == c.OutputIDs[i] {
			t.Logf("near-tie at step %d: %d, mlx-lm %d, margin %.4f", i, id, c.OutputIDs[i], margin)
			return
		}
		t.Fatalf("step %d gives token %d, want %d (margin %.4f)", i, id, c.OutputIDs[i], margin)
	}
}

// serveDemo serves the demo model over HTTP for the length of a test.
func serveDemo(t *testing.T) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(serveHandler(t, serveFlags{settings: demoSettings()}))
	t.Cleanup(srv.Close)
	return srv
}

// serveHandler returns what calla serve answers requests with. Its engine ends
// with the test.
func serveHandler(t *testing.T, s serveFlags) http.Handler {
	t.Helper()
	o, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	options, memory, err := s.engineOptions(o, log)
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(o.loader(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		endServing(o, e, log)
		o.Close()
	})
	h, err := s.handler(o, e, memory, "", log)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// The chat endpoint gives the same text.
func TestChatAgreesWithMLX(t *testing.T) {
	srv := serveDemo(t)
	for _, c := range expectations(t) {
		t.Run(c.Name, func(t *testing.T) {
			body := map[string]any{
				"model": "demo", "messages": wireMessages(t, c.Messages), "temperature": 0, "max_tokens": len(c.OutputIDs),
				"chat_template_kwargs": map[string]any{"enable_thinking": c.Thinking},
			}
			if c.Tools != nil {
				body["tools"] = c.Tools
			}
			got := postChat(t, srv.URL, body)
			want := c.Output
			if thought, answer, ok := strings.Cut(want, "</think>"); ok {
				if trimmed := strings.TrimSpace(thought); got.Reasoning != trimmed {
					t.Errorf("reasoning %q, want %q", got.Reasoning, trimmed)
				}
				want = answer
			}
			if before, _, ok := strings.Cut(want, "<tool_call>"); ok {
				if len(got.ToolCalls) == 0 {
					t.Errorf("no tool call, want that of %q", c.Output)
				}
				want = before
			}
			if want = strings.TrimSpace(want); got.Content != want && !(c.MinMargin < nearTie) {
				t.Errorf("content %q, want %q", got.Content, want)
			}
		})
	}
}

// wireMessages writes the arguments of tool calls as OpenAI's API has them: a
// string of JSON, where the template has an object.
func wireMessages(t *testing.T, raw json.RawMessage) []map[string]any {
	t.Helper()
	var messages []map[string]any
	if err := json.Unmarshal(raw, &messages); err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		calls, _ := m["tool_calls"].([]any)
		for i, call := range calls {
			f := call.(map[string]any)["function"].(map[string]any)
			b, err := json.Marshal(f["arguments"])
			if err != nil {
				t.Fatal(err)
			}
			f["arguments"] = string(b)
			call.(map[string]any)["id"] = fmt.Sprintf("call_%d", i)
		}
		if m["role"] == "tool" && m["tool_call_id"] == nil {
			m["tool_call_id"] = "call_0"
		}
	}
	return messages
}

type chatReply struct {
	Content   string
	Reasoning string `json:"reasoning_content"`
	ToolCalls []struct {
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

func postChat(t *testing.T, url string, body map[string]any) chatReply {
	t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(url+"/v1/chat/completions", "application/json", bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("status %d: %s", resp.StatusCode, text)
	}
	var out struct {
		Choices []struct{ Message chatReply }
	}
	if err := json.Unmarshal(text, &out); err != nil || len(out.Choices) != 1 {
		t.Fatalf("answer %s: %v", text, err)
	}
	return out.Choices[0].Message
}

func TestLargestLogitsFirst(t *testing.T) {
	got := largest([]float32{1, 5, 3, 5, 2}, 3)
	if want := []rank{{1, 5}, {3, 5}, {2, 3}}; !slices.Equal(got, want) {
		t.Errorf("largest = %v, want %v", got, want)
	}
}
