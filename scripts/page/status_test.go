package page

import (
	"strings"
	"testing"
)

// TestStatus has the view show what the server says, the last hour, and how to
// connect.
func TestStatus(t *testing.T) {
	p := newProxy(t, served.url)
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
	b.reload() // the hour is remembered
	b.wait(`document.querySelector('.chart.decode')?.ariaLabel.includes('At most')`)
	if got := js[int](b, `[...document.querySelectorAll('.chart.decode rect')].filter((r) => r.getAttribute('height') > 0).length`); got < 1 || got > 2 {
		t.Errorf("the chart has %d bars, want those of the minutes just gone", got)
	}
	code := js[string](b, `[...document.querySelectorAll('.connect .code code')].map((c) => c.textContent).join('\n---\n')`)
	for _, want := range []string{"curl " + p.url + "/v1/chat/completions", `base_url="` + p.url + `/v1"`, "baseURL: \"" + p.url, "option.WithBaseURL(\"" + p.url, "apiBase: " + p.url, "OPENAI_API_BASE=" + p.url, "api_base: " + p.url, `"api_url": "` + p.url, "calla-tiny"} {
		if !strings.Contains(code, want) {
			t.Errorf("the snippets lack %q", want)
		}
	}
}

// TestStates has each state of the engine said in words.
func TestStates(t *testing.T) {
	p := newProxy(t, served.url)
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
