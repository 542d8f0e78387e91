package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// claudeTurn is a request as Claude Code sends them: a line for the bill that
// differs in each, its instructions with marks for a cache, a tool, and the
// conversation.
func claudeTurn(bill, more string) string {
	const instructions = "You are a helper for people who write programs. Be brief, and say what you do not know."
	return fmt.Sprintf(`{"model":"demo","max_tokens":8,"temperature":0,
		"metadata":{"user_id":"user_1_account__session_2"},
		"system":[
			{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1.37.f0a; cc_entrypoint=cli; cch=%s;"},
			{"type":"text","text":"You are Claude Code.","cache_control":{"type":"ephemeral"}},
			{"type":"text","text":%q,"cache_control":{"type":"ephemeral"}}],
		"tools":[{"name":"Read","description":"Reads a file.","input_schema":{"type":"object","properties":{"file_path":{"type":"string"}},"required":["file_path"]}}],
		"messages":[{"role":"user","content":[{"type":"text","text":"<system-reminder>\nToday is a day.\n</system-reminder>"},{"type":"text","text":"Hello"}]}%s]}`,
		bill, strings.Repeat(instructions+"\n", 4), more)
}

// Two turns whose bills differ share their prompt: the second reads the first
// from the cache.
func TestClaudeCodeHitsTheCache(t *testing.T) {
	url := serveDemo(t).URL
	type answer struct {
		Usage struct {
			Input int             `json:"input_tokens"`
			Read  int             `json:"cache_read_input_tokens"`
			Miss  json.RawMessage `json:"cache_miss"`
		}
	}
	ask := func(body string) (a answer) {
		t.Helper()
		status, text := send(t, context.Background(), url+"/v1/messages?beta=true", body)
		if err := json.Unmarshal([]byte(text), &a); err != nil || status != 200 {
			t.Fatalf("status %d: %s", status, text)
		}
		return a
	}
	first := ask(claudeTurn("a1b2c", ""))
	if first.Usage.Read != 0 || first.Usage.Input < 100 {
		t.Fatalf("usage of the first turn %+v, want a prompt of its own", first.Usage)
	}
	for _, tt := range []struct{ name, more string }{
		{"the same turn again", ""},
		{"the next turn", `,{"role":"assistant","content":[{"type":"text","text":"Hello!"}]},{"role":"user","content":[{"type":"text","text":"Go on"}]}`},
	} {
		got := ask(claudeTurn("0f9e8", tt.more))
		// All but the last turn's own tokens, of which one is always evaluated.
		if got.Usage.Read < first.Usage.Input*3/4 || got.Usage.Miss != nil {
			t.Errorf("%s: usage %+v after a prompt of %d tokens, want most of it from the cache", tt.name, got.Usage, first.Usage.Input)
		}
	}
}
