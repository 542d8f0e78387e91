package cpu

// Route chooses the experts of one row: the len(experts) largest logits, the
// largest first, of equals the lower index. Their weights are the softmax over
// the chosen logits, which is the softmax over all, renormalised.
//
//	experts, weights  [experts a token]
//	logits            [experts]
func Route(experts []int32, weights, logits []float32) {
	n := 0 // how many are chosen so far, in order
	for e, v := range logits {
		if n < len(experts) {
			n++
		} else if !(v > weights[n-1]) {
			continue
		}
		k := n - 1
		for ; k > 0 && v > weights[k-1]; k-- {
			experts[k], weights[k] = experts[k-1], weights[k-1]
		}
		experts[k], weights[k] = int32(e), v
	}
	largest := weights[0]
	var sum float32
	for k, v := range weights {
		weights[k] = exp(v - largest)
		sum += weights[k]
	}
	for k := range weights {
		weights[k] /= sum
	}
}
