package cpu

import "math"

// Argmax returns the index of the largest logit, of equals the lowest, and -1
// where any is not a number, the largest is not finite or there are none.
func Argmax(logits []float32) int32 {
	best, largest := int32(-1), float32(math.Inf(-1))
	for i, v := range logits {
		if v != v {
			return -1
		}
		if v > largest {
			best, largest = int32(i), v
		}
	}
	if math.IsInf(float64(largest), 1) {
		return -1
	}
	return best
}
