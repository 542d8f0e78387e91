package engine

import (
	"context"

	"calla/core/backend"
	"calla/core/model"
)

// Evaluate prefills a prompt on a fresh state and decodes greedily, steps
// tokens in all, whatever they are. After the prompt and after each token but
// the last it calls visit with the logits of all rows and the token it takes,
// the largest logit's. It is for comparing this model with others; it leaves
// out queue, cache and stop tokens.
func Evaluate(ctx context.Context, m *model.Model, turn Turn, chunk int, prompt []int32, steps int, visit func(logits []float32, token int32)) error {
	if len(prompt) == 0 {
		return ErrNoPrompt
	}
	if err := checkTokens(prompt, m.Config().Vocab); err != nil {
		return err
	}
	s, err := m.NewState(len(prompt) + steps)
	if err != nil {
		return &DeviceError{err}
	}
	defer s.Close()
	step, err := evaluatePrompt(ctx, m, s, newGrid(prompt, turn), chunk, prompt)
	if err != nil {
		return err
	}
	for i := range steps {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		id, err := argmax(step.Logits())
		if err != nil {
			return err
		}
		visit(step.Logits(), id)
		if i == steps-1 {
			break
		}
		if step, err = finished(m.Decode(s, id)); err != nil {
			return err
		}
	}
	return nil
}

// evaluatePrompt prefills all of a prompt; the step it returns has the logits
// of the last token.
func evaluatePrompt(ctx context.Context, m *model.Model, s backend.State, g grid, chunk int, prompt []int32) (step backend.Step, err error) {
	from := 0
	for _, end := range g.callEnds(0, len(prompt), chunk, nil) {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		step, err = finished(m.Prefill(s, prompt[from:end], g.covering(from, end), end == len(prompt)))
		if err != nil {
			return nil, err
		}
		from = end
	}
	return step, nil
}
