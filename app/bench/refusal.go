package bench

import "fmt"

// refuse says why a run does not count, and what to do about it, or nothing.
// Tokens of the prompt's head, which every prompt begins with, may have come
// from a cache. A prompt of 0 tokens is one whose length the target tells; of 0
// tokens generated nobody asks the time.
func refuse(s Sample, prompt, tokens, head int) string {
	least := min(tokens, MinTokens)
	switch {
	case s.Cached > head:
		return "tokens of the prompt came from a cache: turn the server's prompt cache off"
	case s.Others > 0:
		return "another request had the engine in the same time: keep other clients away"
	case prompt > 0 && s.Prompt != prompt:
		return fmt.Sprintf("%d tokens of the prompt were evaluated, want %d: its target is at fault", s.Prompt, prompt)
	case s.Generated < least:
		return fmt.Sprintf("the answer ended before %d tokens: ask with or without --chat, or leave this length out of --contexts", least)
	case s.Prefill <= 0 || tokens > 0 && s.Decode <= 0:
		return "all tokens came at once, so that a step has no time: the server must stream each token"
	}
	return ""
}
