package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
)

// A prompt that fills the context is refused with both numbers, one token less
// is answered by one token, and nothing is ever cut.
func TestContextIsExact(t *testing.T) {
	const most = 64
	s := serveFlags{settings: demoSettings()}
	s.maxSeq = most
	srv := httptest.NewServer(serveHandler(t, s))
	t.Cleanup(srv.Close)
	for _, tt := range []struct {
		name              string
		prompt, maxTokens int
		want              int // tokens of the completion; 0 is a refusal
	}{
		{"one token of room", most - 1, 1, 1},
		{"no room", most, 1, 0},
		{"one token too many", most + 1, 1, 0},
		{"the limit ends with the context", most - 4, 4, 4},
		{"the limit is one beyond the context", most - 4, 5, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ids := strings.TrimSuffix(strings.Repeat("300,", tt.prompt), ",")
			status, body := send(t, context.Background(), srv.URL+"/v1/completions",
				fmt.Sprintf(`{"model":"demo","max_tokens":%d,"prompt":[%s],"logit_bias":{"5094":-100,"5096":-100}}`, tt.maxTokens, ids))
			if tt.want == 0 {
				for _, part := range []string{"context_length_exceeded", fmt.Sprint(most), fmt.Sprint(tt.prompt)} {
					if status != 400 || !strings.Contains(body, part) {
						t.Errorf("status %d, %s; want 400 with %s", status, body, part)
					}
				}
				return
			}
			var got struct {
				Choices []struct {
					Finish string `json:"finish_reason"`
				}
				Usage struct {
					Tokens int `json:"completion_tokens"`
				}
			}
			if err := json.Unmarshal([]byte(body), &got); err != nil || status != 200 || len(got.Choices) != 1 {
				t.Fatalf("status %d, %s", status, body)
			}
			if got.Usage.Tokens != tt.want || got.Choices[0].Finish != "length" {
				t.Errorf("%d tokens and the finish reason %s, want %d and length", got.Usage.Tokens, got.Choices[0].Finish, tt.want)
			}
		})
	}
}
