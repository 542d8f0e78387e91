package engine

import "calla/core/backend"

// chooser picks a generation's tokens and describes them.
type chooser struct {
	request   Request
	direct    bool // the device's largest logit is the choice
	sampler   *sampler
	vocab     int
	generated []int32
	loop      loopDetector
	looping   bool
}

// newChooser makes a chooser of tokens below vocab. Exact says that the device
// has logits of no others.
func newChooser(r Request, vocab int, exact bool) *chooser {
	return &chooser{
		request: r, vocab: vocab, sampler: newSampler(r.Sampling, r.Prompt, vocab),
		direct: exact && r.Sampling.plain() && r.LogProbs < 0 && r.Guide == nil,
	}
}

// blind reports whether the next token will be known without the logits of its
// step: they may be gone.
func (c *chooser) blind() bool { return c.direct && !c.loop.asks() }

// next chooses the next token from a step's logits.
func (c *chooser) next(step backend.Step) (Event, error) {
	id, err := c.choose(step)
	if err != nil {
		return Event{}, err
	}
	c.sampler.accept(id)
	c.generated = append(c.generated, id)
	c.looping = c.loop.looping(id, func() []float32 { return step.Logits()[:c.vocab] })
	e := Event{Token: id}
	if c.request.LogProbs >= 0 {
		e.LogProb = logProb(step.Logits()[:c.vocab], id, c.request.LogProbs)
	}
	return e, nil
}

func (c *chooser) choose(step backend.Step) (int32, error) {
	if c.direct {
		id := step.Argmax()
		if id < 0 {
			return 0, ErrNotANumber
		}
		return id, nil
	}
	var may Choice
	if c.request.Guide != nil {
		var err error
		if may, err = c.request.Guide.Next(c.generated); err != nil {
			return 0, err
		}
	}
	id, err := c.sampler.sample(step.Logits(), may.Allowed)
	if may.Forced {
		id = may.Token
	}
	return id, err
}
