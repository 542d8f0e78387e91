package engine

// chooser picks a generation's tokens and describes them.
type chooser struct {
	request   Request
	sampler   *sampler
	vocab     int
	generated []int32
	loop      loopDetector
	looping   bool
}

func newChooser(r Request, vocab int) *chooser {
	return &chooser{request: r, sampler: newSampler(r.Sampling, r.Prompt, vocab), vocab: vocab}
}

// next chooses the next token from the logits of all rows.
func (c *chooser) next(logits []float32) (Event, error) {
	var may Choice
	if c.request.Guide != nil {
		var err error
		if may, err = c.request.Guide.Next(c.generated); err != nil {
			return Event{}, err
		}
	}
	id, err := c.sampler.sample(logits, may.Allowed)
	if err != nil {
		return Event{}, err
	}
	if may.Forced {
		id = may.Token
	}
	c.sampler.accept(id)
	c.generated = append(c.generated, id)
	c.looping = c.loop.looping(id, logits[:c.vocab])
	e := Event{Token: id}
	if c.request.LogProbs >= 0 {
		e.LogProb = logProb(logits[:c.vocab], id, c.request.LogProbs)
	}
	return e, nil
}
