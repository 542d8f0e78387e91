package metal

import "calla/core/backend"

// Traits implements backend.Weights: a GPU hands its token on by itself.
func (w *weights) Traits() backend.Traits {
	return backend.Traits{Ahead: true, CallTime: w.device.options.CallTime}
}
