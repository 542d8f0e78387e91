package cpu

// Route chooses the experts of one row: the len(experts) largest logits, the
// largest first, of equals the lower index. Their weights are the softmax over
// the chosen logits, which is the softmax over all, renormalised.
//
//	experts, weights  [experts a token]
//	logits            [experts]
func Route(experts []int32, weights, logits []float32) {
	for k := range experts {
		best := -1
		for e, v := range logits {
			if (best < 0 || v > logits[best]) && !contains(experts[:k], int32(e)) {
				best = e
			}
		}
		experts[k], weights[k] = int32(best), logits[best]
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

func contains(list []int32, x int32) bool {
	for _, v := range list {
		if v == x {
			return true
		}
	}
	return false
}
