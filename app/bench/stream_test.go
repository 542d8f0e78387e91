package bench

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestLumps(t *testing.T) {
	for _, tt := range []struct {
		name           string
		at             []int // milliseconds
		first, largest int
	}{
		{"nothing", nil, 0, 0},
		{"one event", []int{5}, 1, 1},
		{"all at once", []int{5, 5, 5, 5}, 4, 4},
		{"one by one", []int{0, 20, 40, 60}, 1, 1},
		{"one by one, and uneven", []int{0, 15, 45, 60}, 1, 1},
		{"a reader that was late", []int{100, 100, 100, 100, 120, 140, 160, 180}, 4, 4},
		{"a lump at the end", []int{0, 20, 40, 60, 60, 60}, 1, 3},
		{"two at a time", []int{0, 0, 40, 40, 80, 80}, 2, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var events []time.Time
			start := time.Now()
			for _, ms := range tt.at {
				events = append(events, start.Add(time.Duration(ms)*time.Millisecond))
			}
			if first, largest := lumps(events); first != tt.first || largest != tt.largest {
				t.Errorf("lumps = %d, %d, want %d, %d", first, largest, tt.first, tt.largest)
			}
		})
	}
}

func TestRefuseStreams(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(s *Sample)
		tokens int // whose time is asked
		want   string
	}{
		{"token by token", func(*Sample) {}, 32, ""},
		{"two tokens an event", func(s *Sample) { s.Stream.Events = 16 }, 32, ""},
		{"more tokens than were asked for", func(s *Sample) { s.Generated = 100000 }, 32, "more than the 32 tokens"},
		{"more tokens than were asked for, of prompts alone", func(s *Sample) { s.Generated = 33 }, 0, "more than the 32 tokens"},
		{"far fewer tokens than events", func(s *Sample) { s.Generated, s.Stream.Events = 8, 33 }, 32, "far fewer tokens than it sent"},
		{"a late reader", func(s *Sample) { s.Stream.First, s.Stream.Largest = 5, 5 }, 32, "came in lumps"},
		{"tokens guessed ahead", func(s *Sample) { s.Stream.First, s.Stream.Largest = 4, 4 }, 32, ""},
		{"a lump in the middle", func(s *Sample) { s.Stream.Largest = 8 }, 32, ""},
		{"a large lump in the middle", func(s *Sample) { s.Stream.Largest = 9 }, 32, "came in lumps"},
		{"a late reader, of prompts alone", func(s *Sample) { s.Stream.Largest = 13 }, 0, ""},
		{"few events", func(s *Sample) { s.Stream.Events = 4 }, 32, "came in lumps"},
		{"13 tokens in 0.061 ms", func(s *Sample) { s.Generated, s.Stream.Events, s.Decode = 13, 13, 61*time.Microsecond }, 32, "came in lumps"},
		{"all at once, of prompts alone", func(s *Sample) { s.Decode = 0 }, 0, "came at once"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := good(256, 32)
			s.Stream = &Stream{Asked: 32, Events: 32, First: 1, Largest: 1}
			tt.change(&s)
			if got := refuse(s, 0, tt.tokens, 0); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("refuse = %q, want %q", got, tt.want)
			}
		})
	}
}

// A peer that makes the whole answer and then sends it has no steps.
func TestAskOfAWholeAnswer(t *testing.T) {
	s := serverOf(t, false, func(w http.ResponseWriter, _ string) {
		io.WriteString(w, strings.Repeat(textEvent, 9)+usageEvent+doneEvent)
	})
	got, err := s.Ask(context.Background(), "text", 9)
	if err != nil {
		t.Fatal(err)
	}
	if why := refuse(got, 0, 9, headTokens); !strings.Contains(why, "at once") && !strings.Contains(why, "in lumps") {
		t.Errorf("refuse(%+v) = %q, want that it came at once", got, why)
	}
}

func TestAskOfEndlessAnswers(t *testing.T) {
	for _, tt := range []struct {
		name, part string
		want       string
	}{
		{"an endless line", strings.Repeat("x", 1<<16), "a line of the stream is too long"},
		{"endless tokens", textEvent, "the stream is too long"},
		{"endless comments", ":" + strings.Repeat("x", 1<<16) + "\n", "the stream is too long"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serverOf(t, false, func(w http.ResponseWriter, _ string) {
				for {
					if _, err := io.WriteString(w, tt.part); err != nil {
						return
					}
				}
			})
			if _, err := s.Ask(context.Background(), "text", 9); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Ask = %v, want an error with %q", err, tt.want)
			}
		})
	}
}

// An empty answer has counts all the same.
func TestAskOfAnEmptyAnswer(t *testing.T) {
	s := serverOf(t, false, func(w http.ResponseWriter, _ string) { io.WriteString(w, usageEvent) })
	got, err := s.Ask(context.Background(), "text", 9)
	if !errors.Is(err, errEmpty) || got.Prompt != 100 {
		t.Errorf("Ask = %+v, %v, want 100 tokens of the prompt and %v", got, err, errEmpty)
	}
}

// A peer that is silent, or sends what is no token, or one token and then none, is
// not waited for without end.
func TestAskHasPatience(t *testing.T) {
	for _, tt := range []struct{ name, first, then string }{
		{"silent", "", ""},
		{"comments", "", ": hold on\n"},
		{"events without text", "", `data: {"choices":[{"text":""}]}` + "\n\n"},
		{"one token", textEvent, ""},
		{"a trickle", textEvent, textEvent},
	} {
		t.Run(tt.name, func(t *testing.T) {
			over := make(chan struct{})
			s := serverOf(t, false, func(w http.ResponseWriter, _ string) {
				io.WriteString(w, tt.first)
				for {
					w.(http.Flusher).Flush()
					select {
					case <-over:
						return
					case <-time.After(20 * time.Millisecond):
						io.WriteString(w, tt.then)
					}
				}
			})
			defer close(over)
			s.Patience = 200 * time.Millisecond
			_, err := s.Ask(context.Background(), "text", 9)
			if !errors.Is(err, errSilent) || !strings.Contains(err.Error(), "--patience") || !strings.Contains(err.Error(), s.URL) {
				t.Errorf("Ask = %v, want %v", err, errSilent)
			}
		})
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the other address was asked %s with the key %q", r.URL, r.Header.Get("Authorization"))
	}))
	defer other.Close()
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer h.Close()
	_, listed := NewServer(context.Background(), "the other server", h.URL, "k", "", false)
	s, err := NewServer(context.Background(), "the other server", h.URL, "k", "m", false)
	if err != nil {
		t.Fatal(err)
	}
	_, asked := s.Ask(context.Background(), "text", 9)
	for _, err := range []error{listed, asked} {
		if err == nil || !strings.Contains(err.Error(), h.URL) || !strings.Contains(err.Error(), other.URL) {
			t.Errorf("a redirect is %v, want an error that names %s and %s", err, h.URL, other.URL)
		}
	}
}

func TestShown(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"plain", "no such model: Grüße", "no such model: Grüße"},
		{"lines", "a\r\nb\t c\n", "a  b  c"},
		{"what a terminal obeys", "\x1b]0;owned\a\x1b[2J\u009b1m", "\ufffd]0;owned\ufffd\ufffd[2J\ufffd1m"},
		{"turned around", "a\u202eb", "a\ufffdb"},
		{"no UTF-8", "a\xffb", "ab"},
		{"long", strings.Repeat("ü", 1000), strings.Repeat("ü", maxShown/2) + "…"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Shown(tt.text); got != tt.want {
				t.Errorf("Shown = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestErrorsOfPeersAreShown(t *testing.T) {
	evil := "\x1b[2J" + strings.Repeat("no", 1000)
	for name, answer := range map[string]func(w http.ResponseWriter, body string){
		"a body":   func(w http.ResponseWriter, _ string) { http.Error(w, evil, 500) },
		"an event": func(w http.ResponseWriter, _ string) { io.WriteString(w, `data: {"error":"`+"\u202e"+`no"}`+"\n\n") },
		"a header": func(w http.ResponseWriter, _ string) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			io.WriteString(c, "HTTP/1.1 200 OK\r\n"+evil+"\r\n\r\n")
		},
		"a redirect": func(w http.ResponseWriter, _ string) { w.Header()["Location"] = []string{"\u202e"}; w.WriteHeader(302) },
	} {
		t.Run(name, func(t *testing.T) {
			s := serverOf(t, false, answer)
			_, err := s.Ask(context.Background(), "text", 9)
			if err == nil || strings.ContainsAny(err.Error(), "\x1b\u202e") || len(err.Error()) > 2*maxShown {
				t.Errorf("Ask = %q, want a short error that can be printed", err)
			}
		})
	}
}

func TestGoOn(t *testing.T) {
	for _, tt := range []struct {
		name  string
		serve func(w http.ResponseWriter, r *http.Request, body string)
		field string
		then  string // part of the next request
	}{
		{"a Calla", func(w http.ResponseWriter, r *http.Request, body string) {
			switch {
			case r.URL.Path == "/v1/status":
				io.WriteString(w, `{"server":"calla"}`)
			case strings.Contains(body, "im_end"):
				io.WriteString(w, `{"tokens":[7]}`)
			default:
				io.WriteString(w, `{"tokens":[1,2]}`)
			}
		}, "logit_bias", `"logit_bias":{"7":-100}`},
		{"another", func(w http.ResponseWriter, _ *http.Request, _ string) { io.WriteString(w, textEvent+usageEvent) }, "ignore_eos", `"ignore_eos":true`},
		{"one that is strict", func(w http.ResponseWriter, _ *http.Request, body string) {
			if strings.Contains(body, "ignore_eos") {
				w.WriteHeader(400)
				return
			}
			io.WriteString(w, textEvent+usageEvent)
		}, "", `"model":"m"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				tt.serve(w, r, string(body))
			}))
			defer h.Close()
			s := Server{Name: "x", URL: h.URL, Model: "m", Client: h.Client()}
			field, err := s.GoOn(context.Background())
			_, body, _ := s.request("text", 9)
			if err != nil || field != tt.field || !strings.Contains(string(body), tt.then) || strings.Contains(string(body), "ignore_eos") != (field == "ignore_eos") {
				t.Errorf("GoOn = %q, %v, and then %s; want %q", field, err, body, tt.field)
			}
		})
	}
}
