package bench

import "fmt"

// refuse says why a run does not count, and what to do about it, or nothing.
// Tokens of the prompt's head, which every prompt begins with, may have come
// from a cache. A prompt of 0 tokens is one whose length the target tells; of 0
// tokens generated nobody asks the time.
func refuse(s Sample, prompt, tokens, head int) string {
	least := min(tokens, MinTokens)
	switch {
	case s.Stream != nil && s.Generated > s.Stream.Asked:
		return fmt.Sprintf("the server counts more than the %d tokens that it was asked for: what it counts can't be believed", s.Stream.Asked)
	case s.Cached > head:
		return "tokens of the prompt came from a cache: turn the server's prompt cache off"
	case s.Others > 0:
		return "another request had the engine in the same time: keep other clients away"
	case prompt > 0 && s.Prompt != prompt:
		return fmt.Sprintf("%d tokens of the prompt were evaluated, want %d: its target is at fault", s.Prompt, prompt)
	case s.Generated < least:
		return fmt.Sprintf("the answer ended before %d tokens: ask with or without --chat, start its server so that it honours ignore_eos, or leave this length out of --contexts", least)
	case s.Stream != nil && s.Stream.Events > tokensPerEvent*s.Generated:
		return "the server counts far fewer tokens than it sent: what it counts can't be believed"
	case s.Stream != nil && s.Generated >= MinTokens && s.Decode <= 0:
		return allAtOnce // the time to the first token is that of all
	case s.Prefill <= 0 || tokens > 0 && s.Decode <= 0:
		return allAtOnce
	case tokens > 0 && s.inLumps():
		return "the answer came in lumps, so that its steps can't be told: the server must stream each token as it is made, and the machine must not be busy with other things"
	}
	return ""
}

const allAtOnce = "all tokens came at once, so that a step has no time: the server must stream each token"
