package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"calla/app/power"
	"calla/core/backend"
	"calla/core/engine"
	"calla/core/server"
)

// screen is where calla serve writes, for a test that reads meanwhile.
type screen struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// until waits for a text on the screen and returns what matched.
func (s *screen) until(t *testing.T, pattern string) []string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	for range 2000 {
		if m := re.FindStringSubmatch(s.String()); m != nil {
			return m
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("%s never came: %s", pattern, s.String())
	return nil
}

// calla serve from its start to Ctrl-C, with clients that stay, that leave and
// that are still there: it ends by itself and leaves no goroutine.
func TestServeLeavesNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	ctx, interrupt := context.WithCancel(context.Background())
	s := serveFlags{settings: demoSettings(), host: "localhost"}
	var out screen
	ended := make(chan error, 1)
	go func() { ended <- s.serve(ctx, &out, slog.New(slog.DiscardHandler)) }()
	url := out.until(t, `listening on (http://127\.0\.0\.1:\d+)`)[1]
	out.until(t, "ready")

	transport := &http.Transport{}
	client := &http.Client{Transport: transport}
	ask := func(ctx context.Context, body string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		return client.Do(r)
	}
	const long = `{"model":"demo","stream":true,"max_tokens":2000,"logit_bias":{"5096":-100,"5094":-100},"messages":[{"role":"user","content":"Hello"}]}`
	resp, err := ask(context.Background(), `{"model":"demo","max_tokens":3,"messages":[{"role":"user","content":"Hello"}]}`)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("a short answer: %v, %v", resp, err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()

	leaving, leave := context.WithCancel(context.Background())
	if resp, err = ask(leaving, long); err != nil {
		t.Fatal(err)
	}
	io.ReadFull(resp.Body, make([]byte, 200))
	leave()
	resp.Body.Close()

	if resp, err = ask(context.Background(), long); err != nil {
		t.Fatal(err)
	}
	io.ReadFull(resp.Body, make([]byte, 200))
	interrupt()
	io.Copy(io.Discard, resp.Body) // until the server breaks it off
	resp.Body.Close()
	select {
	case err := <-ended:
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("serve: %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("calla serve did not end")
	}
	transport.CloseIdleConnections()
	goleak.VerifyNone(t, before)
}

// Each of the engine's states has one of the server's, and what it says of a
// stuck device goes along.
func TestStatesOfTheEngine(t *testing.T) {
	for state, want := range map[engine.State]server.State{
		engine.Loading: server.StateLoading, engine.Ready: server.StateReady, engine.Busy: server.StateBusy,
		engine.Unloaded: server.StateUnloaded, engine.Failed: server.StateFailed, engine.Stuck: server.StateStuck,
		engine.Stopped: server.StateStopping,
	} {
		s := engine.Status{State: state, Error: "why", StepAge: time.Minute, LoadDone: 1, LoadTotal: 2}
		got := engineStatus(s, power.Condition{Thermal: power.Fair, LowPower: true}, engine.Memory{}, 0)
		if got.State != want || got.Reason != "why" || got.LastStep != time.Minute || got.Thermal != "fair" || !got.LowPower {
			t.Errorf("%s became %s, %q, %v", state, got.State, got.Reason, got.LastStep)
		}
		if loading := got.Progress.Total == 2; loading != (state == engine.Loading) {
			t.Errorf("%s tells of loading: %v", state, got.Progress)
		}
	}
}

// budgeted is a device with another budget.
type budgeted struct {
	backend.Device
	budget int64
}

func (b budgeted) Memory() (budget, total int64) { return b.budget, b.budget }

// What does not fit is refused before anything is loaded, with the largest
// context that does.
func TestContextsThatDoNotFitAreRefused(t *testing.T) {
	for _, maxSeq := range []int{1024, 8192} {
		s := demoSettings()
		s.maxSeq = maxSeq
		o, err := s.open()
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		_, need, err := s.engineOptions(o, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		for _, off := range []int64{-1, 0, 1} {
			o := *o
			o.device = budgeted{o.device, need.Total() + off}
			_, _, err := s.engineOptions(&o, slog.New(slog.DiscardHandler))
			if off >= 0 {
				if err != nil {
					t.Errorf("%d bytes over what %d tokens need: %v", off, maxSeq, err)
				}
				continue
			}
			says := regexp.MustCompile(fmt.Sprintf(`max-seq %d needs .* GiB .*; the largest max-seq that fits is (\d+)$`, maxSeq))
			m := says.FindStringSubmatch(fmt.Sprint(err))
			if m == nil {
				t.Fatalf("a byte less than %d tokens need: %v", maxSeq, err)
			}
			smaller := s
			if fmt.Sscan(m[1], &smaller.maxSeq); smaller.maxSeq >= maxSeq || smaller.maxSeq < maxSeq-64 {
				t.Errorf("the largest of %d is said to be %d", maxSeq, smaller.maxSeq)
			}
			if _, _, err := smaller.engineOptions(&o, slog.New(slog.DiscardHandler)); err != nil {
				t.Errorf("the largest does not fit: %v", err)
			}
		}
		o.device = budgeted{o.device, 1 << 20}
		if _, _, err := s.engineOptions(o, slog.New(slog.DiscardHandler)); err == nil || !strings.HasSuffix(err.Error(), "no context fits") {
			t.Errorf("in a MiB: %v", err)
		}
	}
}

// With thinking on and no field of sampling the checkpoint's generation_config
// applies; capabilities says so; a seed makes it repeatable.
func TestThinkingTakesTheCheckpointsSampling(t *testing.T) {
	srv := serveDemo(t)
	_, body := send(t, context.Background(), srv.URL+"/v1/capabilities", "")
	var c struct {
		Sampling map[string]struct {
			Temperature float64
			TopP        float64 `json:"top_p"`
			TopK        int     `json:"top_k"`
		} `json:"sampling_defaults"`
	}
	if err := json.Unmarshal([]byte(body), &c); err != nil {
		t.Fatal(err)
	}
	if on := c.Sampling["thinking_on"]; on.Temperature != 1 || on.TopK != 20 || on.TopP != 0.95 {
		t.Errorf("capabilities says %+v of thinking, want what bundle/demo/generation_config.json says", on)
	}
	if off := c.Sampling["thinking_off"]; off.Temperature != 0 {
		t.Errorf("capabilities says %+v without thinking, want greedy", off)
	}
	answer := func(fields string) string {
		_, body := send(t, context.Background(), srv.URL+"/v1/chat/completions",
			`{"model":"demo","max_tokens":24,"messages":[{"role":"user","content":"Tell me of the sea."}]`+fields+`}`)
		var a struct {
			Choices []struct{ Message chatReply }
		}
		if err := json.Unmarshal([]byte(body), &a); err != nil || len(a.Choices) != 1 {
			t.Fatalf("%v: %s", err, body)
		}
		return a.Choices[0].Message.Reasoning + "|" + a.Choices[0].Message.Content
	}
	const thinking = `,"chat_template_kwargs":{"enable_thinking":true}`
	greedy := answer(thinking + `,"temperature":0`)
	if again := answer(thinking + `,"temperature":0,"seed":7`); again != greedy {
		t.Errorf("the greedy answer is %q, then %q", greedy, again)
	}
	kinds := map[string]bool{}
	for seed := range 6 {
		fields := fmt.Sprintf(`%s,"seed":%d`, thinking, seed)
		a := answer(fields)
		kinds[a] = true
		if b := answer(fields); b != a {
			t.Errorf("seed %d gives %q, then %q", seed, a, b)
		}
		if c := answer(fields + `,"temperature":1,"top_k":20,"top_p":0.95`); c != a {
			t.Errorf("seed %d with the fields spelt out gives %q, without them %q", seed, c, a)
		}
	}
	if len(kinds) < 2 {
		t.Errorf("six seeds give one answer: %v", kinds)
	}
	plain := answer("")
	for seed := range 3 {
		if a := answer(fmt.Sprintf(`,"seed":%d`, seed)); a != plain {
			t.Errorf("without thinking seed %d changes %q to %q", seed, plain, a)
		}
	}
}
