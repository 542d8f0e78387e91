package page

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestStatus has the view show what the server says, the last hour, and how to
// connect.
func TestStatus(t *testing.T) {
	p := newProxy(t, served.URL)
	b := open(t, p.url, "/")
	b.asked("What is the capital of France?")
	p.set(func(p *proxy) {
		p.status = func(s map[string]any) {
			s["recent_errors"] = []any{map[string]any{"at": "2026-01-02T03:04:05Z", "code": "device_error", "message": "the device failed", "count": 3}}
		}
	})
	b.click("#engine-link")
	b.wait(`document.querySelector('.errors li')`)
	if got := b.text(".state-words"); got != "Ready" {
		t.Errorf("the state is %q, want Ready", got)
	}
	numbers := b.text(".numbers > div")
	for _, want := range []string{"calla-tiny", "also as calla, demo", "8,192 tokens", "26 used by the open conversation", "of at most", "7 tokens at", "of at most 64 wait"} {
		if !strings.Contains(numbers, want) {
			t.Errorf("the numbers lack %q:\n%s", want, numbers)
		}
	}
	if got := b.text(".errors li"); !strings.Contains(got, "the device failed") || !strings.Contains(got, "3 times") || !strings.Contains(got, "log says more") {
		t.Errorf("the errors are %q", got)
	}
	if got := js[string](b, `document.querySelector('.chart.decode').ariaLabel`); !strings.Contains(got, "At most") {
		t.Errorf("the chart says %q", got)
	}
	if got := b.text(".numbers > :last-child"); !strings.Contains(got, "Built into the program") || !strings.Contains(got, "9 files") || !strings.Contains(got, "sha256:") {
		t.Errorf("the receipt is %q", got)
	}
	code := js[string](b, `[...document.querySelectorAll('.connect .code code')].map((c) => c.textContent).join('\n---\n')`)
	for _, want := range []string{"curl " + p.url + "/v1/chat/completions", `base_url="` + p.url + `/v1"`, "baseURL: \"" + p.url, "option.WithBaseURL(\"" + p.url, "apiBase: " + p.url, "OPENAI_API_BASE=" + p.url, "api_base: " + p.url, `"api_url": "` + p.url, "calla-tiny"} {
		if !strings.Contains(code, want) {
			t.Errorf("the snippets lack %q", want)
		}
	}
}

// TestHour has the charts show what the server counted: the same in any browser,
// and nothing where there was nothing.
func TestHour(t *testing.T) {
	p := newProxy(t, served.URL)
	minutes := []any{
		map[string]any{"start": "2026-05-04T12:08:00Z", "prefill": map[string]any{"tokens": 900, "seconds": 1.5}, "decode": map[string]any{"tokens": 0, "seconds": 0}},
		map[string]any{"start": "2026-05-04T13:05:00Z", "prefill": map[string]any{"tokens": 300, "seconds": 1}, "decode": map[string]any{"tokens": 70, "seconds": 0.5}},
		map[string]any{"start": "2026-05-04T13:07:00Z", "prefill": map[string]any{"tokens": 10, "seconds": 1}, "decode": map[string]any{"tokens": 280, "seconds": 1}},
	}
	hour := func(startedAt string, minutes []any) func(*proxy) {
		return func(p *proxy) {
			p.status = func(s map[string]any) {
				s["started_at"] = startedAt
				s["throughput"].(map[string]any)["hour"] = map[string]any{"at": "2026-05-04T13:07:30Z", "minutes": minutes}
			}
		}
	}
	p.set(hour("2026-05-04T02:00:00Z", minutes))
	b := open(t, p.url, "/#/status")
	b.wait(`document.querySelector('.chart')`)
	// Of sixty places the first, the 58th and the last have bars.
	bars := func(b *tab, field string) string {
		return js[string](b, `[...document.querySelectorAll('.chart.`+field+` rect')].map((r) => r.getAttribute('x') / 10 | 0).join(' ')`)
	}
	for field, want := range map[string]string{"decode": "57 59", "prefill": "0 57 59"} {
		if got := bars(b, field); got != want {
			t.Errorf("the bars of %s are at %s, want %s", field, got, want)
		}
	}
	if got := js[string](b, `document.querySelector('.chart.decode').ariaLabel`); !strings.Contains(got, "At most 280 tokens/s") {
		t.Errorf("the chart says %q", got)
	}
	if got := b.text(".charts"); !strings.Contains(got, "At most 600 tokens/s") || strings.Contains(got, "what was before") {
		t.Errorf("the charts say %q", got)
	}
	if got := bars(open(t, p.url, "/#/status"), "decode"); got != "57 59" {
		t.Errorf("another browser has bars at %s, want the same", got)
	}
	b.reload()
	if got := bars(b, "decode"); got != "57 59" {
		t.Errorf("after a reload the bars are at %s, want the same", got)
	}

	// After a start of the server it begins anew.
	p.set(hour("2026-05-04T13:07:00Z", []any{}))
	b.wait(`document.querySelector('.charts').textContent.includes('what was before is not in here')`)
	if got := bars(b, "decode") + bars(b, "prefill"); got != "" {
		t.Errorf("a server that has just started has bars at %s", got)
	}
	if got := js[string](b, `document.querySelector('.chart.prefill').ariaLabel`); !strings.Contains(got, "Nothing in the last hour") {
		t.Errorf("the chart says %q", got)
	}
}

// TestSlowMachine has what slows the machine down said, where something does.
func TestSlowMachine(t *testing.T) {
	p := newProxy(t, served.URL)
	b := open(t, p.url, "/#/status")
	for _, tt := range []struct {
		thermal string
		saving  bool
		want    string
	}{
		{"serious", false, "The machine is hot: answers are slower."},
		{"critical", true, "The machine is hot and saves power: answers are slower."},
		{"fair", true, "The machine saves power: answers are slower."},
		{"fair", false, ""},
	} {
		t.Run(fmt.Sprintf("%s, saving %v", tt.thermal, tt.saving), func(t *testing.T) {
			p.set(func(p *proxy) {
				p.status = func(s map[string]any) {
					throughput := s["throughput"].(map[string]any)
					throughput["thermal"], throughput["low_power"] = tt.thermal, tt.saving
				}
			})
			b := &tab{t: t, ctx: b.ctx, url: b.url}
			b.wait(`[...document.querySelectorAll('.numbers > div')].find((d) => d.textContent.startsWith('Now'))?.querySelector('.quiet').textContent === ` + quote(tt.want))
		})
	}
}

// TestReceipt has what is known of the files said in words.
func TestReceipt(t *testing.T) {
	p := newProxy(t, served.URL)
	b := open(t, p.url, "/#/status")
	known := func(more map[string]any) map[string]any {
		r := map[string]any{"repository": "owner/name", "revision": "abcdef", "files": 12, "bytes": 20.4e9, "digest": "sha256:0123"}
		maps.Copy(r, more)
		return r
	}
	for _, tt := range []struct {
		name    string
		receipt map[string]any
		want    []string
	}{
		{"downloaded", known(map[string]any{"source": "downloaded", "pinned": true, "verified_at": "2026-05-04T13:07:30Z"}),
			[]string{"Verified on May 4, 2026", "owner/name, revision abcdef, downloaded; every digest is the one that the program knows. 12 files, 20.4 GB, sha256:0123"}},
		{"another program's, of another list, at an unknown time", known(map[string]any{"source": "found", "pinned": false}),
			[]string{"Verified", "found on this machine; every digest is that of its list"}},
		{"never verified", map[string]any{"source": "unverified", "pinned": false}, []string{"Never verified", "calla verify"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p.set(func(p *proxy) { p.status = func(s map[string]any) { s["receipt"] = tt.receipt } })
			b := &tab{t: t, ctx: b.ctx, url: b.url}
			for _, want := range tt.want {
				b.wait(`document.querySelector('.numbers > :last-child')?.textContent.includes(` + quote(want) + `)`)
			}
		})
	}
}

// TestStates has each state of the engine said in words.
func TestStates(t *testing.T) {
	p := newProxy(t, served.URL)
	b := open(t, p.url, "/#/status")
	for _, tt := range []struct {
		name, want, remedy string
		change             func(map[string]any)
	}{
		{"loading", "Loading 25 %", "reading weights", func(s map[string]any) {
			s["state"], s["reason"] = "loading", "reading weights"
			s["progress"] = map[string]any{"stage": "loading", "done": 25, "total": 100}
		}},
		{"busy", "Answering", "", func(s map[string]any) { s["state"] = "busy" }},
		{"unloaded", "Idle, memory freed", "The next message loads the model again", func(s map[string]any) { s["state"] = "unloaded" }},
		{"stuck", "Not responding", "Start it again", func(s map[string]any) { s["state"] = "stuck" }},
		{"failed", "Failed", "no memory. Start it again", func(s map[string]any) { s["state"], s["reason"] = "failed", "no memory" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &tab{t: t, ctx: b.ctx, url: b.url}
			p.set(func(p *proxy) { p.status = tt.change })
			b.wait(`document.querySelector('.state-words')?.textContent === ` + quote(tt.want))
			if got := b.text(".state .quiet"); !strings.Contains(got, tt.remedy) {
				t.Errorf("the remedy is %q, want %q", got, tt.remedy)
			}
			b.wait(`document.querySelector('#engine-state').textContent === ` + quote(tt.want))
		})
	}
}

// TestSnippets runs what people are to copy, where there is what runs it.
func TestSnippets(t *testing.T) {
	b := open(t, served.URL, "/#/status")
	b.wait(`document.querySelector('.connect .code')`)
	for _, tt := range []struct {
		name, want string
		command    func(t *testing.T, code string) *exec.Cmd
	}{
		{"curl", `"content":"`, func(t *testing.T, code string) *exec.Cmd {
			if _, err := exec.LookPath("curl"); err != nil {
				t.Skip("needs curl")
			}
			return exec.Command("sh", "-c", code)
		}},
		{"Python", "\n", func(t *testing.T, code string) *exec.Cmd {
			python := os.Getenv("CALLA_CLIENTS_PYTHON")
			if python == "" {
				t.Skip("needs CALLA_CLIENTS_PYTHON, a Python with the package openai: run scripts/test")
			}
			return exec.Command(python, "-c", code)
		}},
		{"Node", "\n", func(t *testing.T, code string) *exec.Cmd {
			modules := os.Getenv("CALLA_NODE_MODULES")
			if modules == "" {
				t.Skip("needs CALLA_NODE_MODULES, a folder with the package openai: run scripts/test")
			}
			dir := t.TempDir()
			file := filepath.Join(dir, "snippet.mjs")
			if err := errors.Join(os.Symlink(modules, filepath.Join(dir, "node_modules")), os.WriteFile(file, []byte(code), 0o600)); err != nil {
				t.Fatal(err)
			}
			return exec.Command("node", file)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code := js[string](b, `[...document.querySelectorAll('.connect .code')].find((f) => f.querySelector('figcaption span').textContent === `+quote(tt.name)+`).querySelector('code').textContent`)
			cmd := tt.command(t, code)
			cmd.Env = append(os.Environ(), "NO_PROXY=*")
			out, err := cmd.Output()
			if err != nil || !strings.Contains(string(out), tt.want) || strings.TrimSpace(string(out)) == "" {
				t.Errorf("%s: %v\n%s", code, err, out)
			}
		})
	}
}
