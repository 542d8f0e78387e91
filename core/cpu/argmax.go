package cpu

// Argmax returns the index of the largest logit, of equals the lowest, and -1
// where any is not a number or there are none.
func Argmax(logits []float32) int32 {
	best := int32(-1)
	var largest float32
	for i, v := range logits {
		if v != v {
			return -1
		}
		if best < 0 || v > largest {
			best, largest = int32(i), v
		}
	}
	return best
}
