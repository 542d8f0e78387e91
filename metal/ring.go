package metal

import "fmt"

const (
	// inFlight is how many committed calls may be unfinished.
	inFlight = 2
	// slots is how many calls have their inputs and their token apart from
	// those of others: the ones in flight, the one being made and the one whose
	// token the next follows.
	slots = inFlight + 2
)

// ring hands each call a place of its own for what the processor writes and
// reads: inputs, and the token of the largest logit.
//
// Invariants:
//   - at most inFlight steps are unfinished when a call begins;
//   - a finished step has its token copied out of the ring.
type ring struct {
	tokens *Buffer        // [slots] int32: results
	inputs [slots]*Buffer // of each call
	next   int            // slot of the next call
	steps  []*step        // committed and not known to be finished
}

func (r *ring) allocate(d Driver) error {
	var err error
	r.tokens, err = d.NewBuffer("tokens", slots*4)
	return err
}

// take returns the next slot, and an input buffer of at least that many bytes.
func (r *ring) take(d Driver, bytes int) (slot int, inputs *Buffer, err error) {
	for len(r.steps) >= inFlight {
		r.steps[0].Wait()
	}
	slot = r.next
	if b := r.inputs[slot]; b == nil || len(b.Bytes) < bytes {
		if b != nil {
			d.Free(b)
			r.inputs[slot] = nil
		}
		if r.inputs[slot], err = d.NewBuffer(fmt.Sprintf("inputs%d", slot), int64(max(bytes, 4096))); err != nil {
			return 0, nil, err
		}
	}
	r.next = (slot + 1) % slots
	return slot, r.inputs[slot], nil
}

// drain waits for all steps.
func (r *ring) drain() error {
	var first error
	for len(r.steps) > 0 {
		if err := r.steps[0].Wait(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// finished forgets a step and those committed before it.
func (r *ring) finished(s *step) {
	for i, other := range r.steps {
		if other == s {
			r.steps = r.steps[i+1:]
			return
		}
	}
}

func (r *ring) free(d Driver) {
	for i, b := range r.inputs {
		if b != nil {
			d.Free(b)
			r.inputs[i] = nil
		}
	}
	if r.tokens != nil {
		d.Free(r.tokens)
		r.tokens = nil
	}
}
