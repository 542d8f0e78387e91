package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"calla/core/chat"
	"calla/core/completion"
	"calla/core/engine"
)

// BenchmarkSecondTurn measures how long a chat with a history of 4,000 tokens
// waits for the first token of its next answer: cold, and where the turn before
// was evaluated. The last reply and the new message have 50 tokens each; the
// reply's prefill is part of the wait.
func BenchmarkSecondTurn(b *testing.B) {
	s := demoSettings()
	s.cacheEntries = 0
	cold := startDemo(b, s, nil, nil)
	s.cacheEntries = engine.DefaultCacheEntries
	warm := startDemo(b, s, nil, nil)
	history := longHistory(b, warm.Service, 4000)
	// The least of each is what the machine's other work disturbs least.
	coldTime, warmTime := time.Hour, time.Hour
	turns := 0
	for b.Loop() {
		turns++
		// A history of its own each time, or a later turn would find an earlier one.
		first := append([]chat.Message{{Role: "system", Content: chat.Text(fmt.Sprint("Chat ", turns, "."))}}, history...)
		second := append(append([]chat.Message{}, first...),
			chat.Message{Role: "assistant", Content: chat.Text(tokensOf(b, warm.Service, 50, 1))},
			chat.Message{Role: "user", Content: chat.Text(tokensOf(b, warm.Service, 50, 2))})
		firstToken(b, warm.Service, first)
		t, cached := firstToken(b, warm.Service, second)
		if cached < 4000 {
			b.Fatalf("the second turn reused %d tokens, want at least 4000", cached)
		}
		warmTime = min(warmTime, t)
		t, _ = firstToken(b, cold.Service, second)
		coldTime = min(coldTime, t)
	}
	b.ReportMetric(coldTime.Seconds()*1000, "cold-ms")
	b.ReportMetric(warmTime.Seconds()*1000, "warm-ms")
	b.ReportMetric(coldTime.Seconds()/warmTime.Seconds(), "times-sooner")
}

// firstToken answers a conversation with one token and returns how long that
// took and how many tokens of the prompt were cached. An answer that was cut
// short is not prefilled ahead.
func firstToken(b *testing.B, c *completion.Service, messages []chat.Message) (time.Duration, int) {
	b.Helper()
	start := time.Now()
	s, err := c.Start(context.Background(), completion.Request{Messages: messages, MaxTokens: 1, LogProbs: engine.NoLogProbs})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var first time.Duration
	for {
		e, err := s.Next()
		if err != nil {
			b.Fatal(err)
		}
		if e.Kind != completion.Progress && first == 0 {
			first = time.Since(start)
		}
		if e.Kind == completion.Done {
			return first, e.Result.CachedTokens
		}
	}
}

// longHistory returns messages of people and replies that end with a message
// and make about that many tokens.
func longHistory(b *testing.B, c *completion.Service, tokens int) []chat.Message {
	b.Helper()
	var out []chat.Message
	for n := 0; n < tokens; n += 200 {
		out = append(out,
			chat.Message{Role: "user", Content: chat.Text(tokensOf(b, c, 90, n))},
			chat.Message{Role: "assistant", Content: chat.Text(tokensOf(b, c, 100, n+1))})
	}
	return append(out, chat.Message{Role: "user", Content: chat.Text(tokensOf(b, c, 50, 3))})
}

// tokensOf returns a text of about that many tokens.
func tokensOf(b *testing.B, c *completion.Service, tokens, seed int) string {
	b.Helper()
	words := strings.Fields("the keeper of a light wrote one line each night about rain wind ships and what the sea brought to his door")
	var text string
	for i := 0; ; i++ {
		text += " " + words[(seed*5+i*i+i)%len(words)]
		ids, err := c.Encode(completion.Request{Prompt: &text})
		if err != nil {
			b.Fatal(err)
		}
		if len(ids) >= tokens {
			return strings.TrimSpace(text)
		}
	}
}
