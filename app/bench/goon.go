package bench

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"calla/core/chat"
)

// endings are the control tokens that end an answer of a Calla.
var endings = []string{chat.TurnEnd, "<|endoftext|>"}

// forbidden is a bias with which a token is never chosen.
const forbidden = -100

// GoOn has later answers go on to their last token where the server can be told
// so, and returns the field that says it; none where it can't. A Calla is
// forbidden the tokens that end an answer. Others are told ignore_eos, which
// llama.cpp and vLLM honour, unless they refuse it; one that ignores it may end
// its answers early all the same.
func (s *Server) GoOn(ctx context.Context) (field string, err error) {
	if _, calla := s.Busy(ctx); calla {
		biases, err := s.forbidEndings(ctx)
		if err != nil {
			return "", err
		}
		s.also = map[string]any{"logit_bias": biases}
		return "logit_bias", nil
	}
	s.also = map[string]any{"ignore_eos": true}
	_, err = s.Ask(ctx, "1 2 3 4 5 6 7 8 9", 1)
	switch {
	case err == nil || errors.Is(err, errEmpty):
		return "ignore_eos", nil
	case errors.Is(err, errSilent) || ctx.Err() != nil:
		return "", err
	}
	s.also = nil // what else is wrong shows without the field
	return "", nil
}

// forbidEndings returns the biases that keep a Calla from ending an answer.
func (s *Server) forbidEndings(ctx context.Context) (map[string]int, error) {
	biases := map[string]int{}
	for _, ending := range endings {
		body, err := json.Marshal(map[string]string{"content": ending})
		if err != nil {
			return nil, err
		}
		var answer struct{ Tokens []int }
		if err := s.ask(ctx, http.MethodPost, "/tokenize", body, &answer); err != nil {
			return nil, err
		}
		if len(answer.Tokens) == 1 { // more are the text's, and end nothing
			biases[strconv.Itoa(answer.Tokens[0])] = forbidden
		}
	}
	return biases, nil
}
