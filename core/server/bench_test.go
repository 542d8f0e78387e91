package server

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"calla/core/completion"
)

// wordStream says the same word for a number of tokens, each when it is asked
// for where gate is not nil.
type wordStream struct {
	ctx  context.Context
	left int
	gate chan struct{}
}

func (s *wordStream) Prompt() []int32 { return fakePrompt }
func (s *wordStream) Close()          {}

func (s *wordStream) Next() (completion.Event, error) {
	if s.left == 0 {
		return completion.Event{Kind: completion.Done, Result: &completion.Result{Reason: completion.ReasonStop}}, nil
	}
	s.left--
	if s.gate != nil {
		select {
		case <-s.gate:
		case <-s.ctx.Done():
			return completion.Event{}, s.ctx.Err()
		}
	}
	return completion.Event{Kind: completion.Content, Text: " word"}, nil
}

// BenchmarkStreamedToken is what a streamed token costs over real HTTP, the
// client's reading of it included. An op is a token. Paced tokens come one by
// one, each when the one before was read, as a model's do: each is a write and
// a wake-up of its own. The others come as fast as they are taken.
func BenchmarkStreamedToken(b *testing.B) {
	for _, api := range []struct{ path, body, mark string }{
		{"/v1/chat/completions", helloWith(`"stream":true`), " word"},
		{"/v1/responses", `{"model":"served","input":"x","stream":true}`, " word"},
		{"/v1/messages", claudeWith(`"stream":true`), " word"},
	} {
		for _, pace := range []string{"paced", "flood"} {
			b.Run(strings.ReplaceAll(api.path[1:], "/", ".")+"/"+pace, func(b *testing.B) {
				var gate chan struct{}
				if pace == "paced" {
					gate = make(chan struct{}, 1)
				}
				f := &fake{status: EngineStatus{State: StateReady}}
				o := f.options()
				o.Start = func(ctx context.Context, _ completion.Request) (Stream, error) {
					return &wordStream{ctx, b.N, gate}, nil
				}
				s := httptest.NewServer(New(o))
				defer s.Close()
				b.ReportAllocs()
				b.ResetTimer()
				readWords(b, s.URL+api.path, api.body, api.mark, gate)
			})
		}
	}
}

// readWords reads a stream to its end and opens the gate for each word.
func readWords(b *testing.B, url, body, mark string, gate chan struct{}) {
	response, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	var words int
	if gate != nil {
		gate <- struct{}{}
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		if !strings.Contains(lines.Text(), mark+`"`) || words == b.N {
			continue
		}
		if words++; gate != nil && words < b.N {
			gate <- struct{}{}
		}
	}
	if words != b.N {
		b.Fatalf("%d words of %d: %v", words, b.N, lines.Err())
	}
}
