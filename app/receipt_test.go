package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"calla/bundle/demo"
	"calla/core/download"
	"calla/core/server"
)

// TestKeptReceipt has what the download knows of a folder told without saying
// where it is.
func TestKeptReceipt(t *testing.T) {
	const a, b = "sha256:aa", "git-sha1:bb"
	sum := sha256.Sum256([]byte(a + "  a.safetensors\n" + b + "  config.json\n"))
	digest := "sha256:" + hex.EncodeToString(sum[:])
	old, young := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2026, 2, 2, 3, 4, 5, 0, time.UTC)
	files := func(origin download.Origin, verified time.Time) string {
		text, err := json.Marshal(map[string]any{
			"folder": "/secret/models", "repository": "owner/name", "revision": "abc", "total": 12,
			"files": []map[string]any{
				{"name": "config.json", "digest": b, "size": 2, "origin": download.Found, "piece": 1, "verified": young},
				{"name": "a.safetensors", "digest": a, "size": 10, "origin": origin, "piece": 1, "verified": verified},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, tt := range []struct {
		name, receipt string
		want          server.Receipt
	}{
		{"downloaded", files(download.Fetched, old), server.Receipt{Source: server.Downloaded, Repository: "owner/name", Revision: "abc", VerifiedAt: &old, Files: 2, Bytes: 12, Digest: digest}},
		{"of another program", files(download.Linked, old), server.Receipt{Source: server.Found, Repository: "owner/name", Revision: "abc", VerifiedAt: &old, Files: 2, Bytes: 12, Digest: digest}},
		{"verified at an unknown time", files(download.Fetched, time.Time{}), server.Receipt{Source: server.Downloaded, Repository: "owner/name", Revision: "abc", Files: 2, Bytes: 12, Digest: digest}},
		{"a part of the files", strings.Replace(files(download.Fetched, old), `"total":12`, `"total":13`, 1), server.Receipt{Source: server.Unverified}},
		{"no file", `{"folder": "/f", "total": 5}`, server.Receipt{Source: server.Unverified}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var r download.Receipt
			if err := json.Unmarshal([]byte(tt.receipt), &r); err != nil {
				t.Fatal(err)
			}
			got := kept(&r)
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if text, _ := json.Marshal(got); strings.Contains(string(text), "secret") {
				t.Errorf("it says where the files are: %s", text)
			}
		})
	}
}

// TestStatusHasReceiptAndHour asks a server with the built-in model.
func TestStatusHasReceiptAndHour(t *testing.T) {
	srv := serveDemo(t)
	postChat(t, srv.URL, map[string]any{"model": "demo", "messages": []map[string]any{{"role": "user", "content": "What is the capital of France?"}}, "temperature": 0})
	resp, err := http.Get(srv.URL + "/v1/status")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var s server.Status
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
		t.Fatal(err)
	}
	names, err := demo.Source().List()
	if err != nil {
		t.Fatal(err)
	}
	if r := s.Receipt; r.Source != server.BuiltIn || r.Files != len(names) || r.Bytes < 9e6 || !strings.HasPrefix(r.Digest, "sha256:") || r.VerifiedAt != nil || r.Pinned {
		t.Errorf("receipt %+v, want that of the %d built-in files", r, len(names))
	}
	var prefill, decode int
	for _, m := range s.Throughput.Hour.Minutes {
		prefill, decode = prefill+m.Prefill.Tokens, decode+m.Decode.Tokens
	}
	last := s.Throughput.Last
	if last == nil || prefill != last.PromptTokens-last.CachedTokens || decode < last.CompletionTokens-1 || decode == 0 {
		t.Errorf("the hour has %d and %d tokens, want those of the answer %+v", prefill, decode, last)
	}
}
