package cpu

import "errors"

// Populate makes the memory of a full context resident, and that of calls of at
// most rows rows: it writes to all of it, as a long conversation would. The
// state must be empty. Measurements of memory need it; they would take hours of
// prefill otherwise.
func (s *State) Populate(rows int) error {
	if s.length > 0 || s.open {
		return errors.New("cpu: only an empty state can be populated")
	}
	w := s.weights
	if err := s.kv.grow(s.capacity); err != nil {
		return err
	}
	if err := w.scratch.ensure(w.config, rows, s.capacity, w.device.options.Threads); err != nil {
		return err
	}
	for _, row := range s.kv.pages {
		for _, r := range row {
			clear(r.bytes)
		}
	}
	clear(s.memory.bytes)
	clear(w.scratch.region.bytes)
	return nil
}
