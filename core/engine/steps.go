package engine

import "calla/core/backend"

// steps evaluates the tokens of one generation. Where the device can, it commits
// the step of a token that it has not read yet: the device hands its own choice
// on, and does not wait for us in between.
//
// Invariants:
//   - at most one step is ahead: with the one that is waited for, two are on the
//     device;
//   - a step that is ahead evaluates the largest logit of the step before it.
type steps struct {
	w     *worker
	state backend.State
	may   bool // the device can be ahead
	ahead backend.Step
}

// after returns the finished step of a token, the choice from the step before.
// Blind says that its own choice will be the largest logit, and be evaluated in
// its turn; its logits may then be gone.
func (d *steps) after(token int32, blind bool) (backend.Step, error) {
	step := d.ahead
	d.ahead = nil
	if step == nil {
		var err error
		step, err = d.w.begin(1, func() (backend.Step, error) { return d.w.model.Decode(d.state, token) })
		if err != nil {
			return nil, err
		}
	}
	var behind error
	if blind && d.may {
		d.ahead, behind = d.w.begin(1, func() (backend.Step, error) { return d.w.model.Follow(d.state) })
	}
	if err := d.w.finish(step); err != nil {
		return nil, err
	}
	return step, behind
}

// discard waits for a step that was one too many. Its error says that the state
// is lost; the tokens before it are not.
func (d *steps) discard() error {
	if d.ahead == nil {
		return nil
	}
	d.w.expect(1)
	err := d.ahead.Wait()
	d.ahead = nil
	if err != nil {
		d.w.o.Log.Warn("engine: a step whose token nobody wanted failed", "error", err)
	}
	return err
}
