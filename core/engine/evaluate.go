package engine

import (
	"context"

	"calla/core/model"
)

// Evaluate prefills a prompt on a fresh state and decodes greedily, steps
// tokens in all, whatever they are. After the prompt and after each token but
// the last it calls visit with the logits of all rows and the token it takes,
// the largest logit's. It is for comparing this model with others; it leaves
// out queue, cache and stop tokens.
func Evaluate(ctx context.Context, m *model.Model, turn Turn, chunk int, prompt []int32, steps int, visit func(logits []float32, token int32)) error {
	switch vocab := m.Config().Vocab; {
	case len(prompt) == 0:
		return ErrNoPrompt
	default:
		for i, t := range prompt {
			if t < 0 || int(t) >= vocab {
				return &TokenError{i, t, vocab}
			}
		}
	}
	s, err := m.NewState(len(prompt) + steps)
	if err != nil {
		return &DeviceError{err}
	}
	defer s.Close()
	g := newGrid(prompt, turn)
	from := 0
	var logits []float32
	for _, end := range g.callEnds(0, len(prompt), chunk, nil) {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		step, err := m.Prefill(s, prompt[from:end], g.covering(from, end), end == len(prompt))
		if err == nil {
			err = step.Wait()
		}
		if err != nil {
			return &DeviceError{err}
		}
		if from = end; end == len(prompt) {
			logits = step.Logits()
		}
	}
	for i := range steps {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		id, err := argmax(logits)
		if err != nil {
			return err
		}
		visit(logits, id)
		if i == steps-1 {
			break
		}
		step, err := m.Decode(s, id)
		if err == nil {
			err = step.Wait()
		}
		if err != nil {
			return &DeviceError{err}
		}
		logits = step.Logits()
	}
	return nil
}
