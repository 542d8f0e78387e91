package engine

import "slices"

// candidate is a token that may be chosen.
type candidate struct {
	id     int32
	logit  float32
	weight float64
}

// likelier orders candidates: the larger logit first, of equals the lower id.
func (a candidate) likelier(b candidate) bool {
	return a.logit > b.logit || a.logit == b.logit && a.id < b.id
}

// mass returns the sum of the weights.
func mass(c []candidate) float64 {
	var sum float64
	for _, x := range c {
		sum += x.weight
	}
	return sum
}

// largest returns the k likeliest tokens, the likeliest first, in the memory of
// work where that is enough. Logits are numbers, and at least k.
func largest(logits []float32, k int, work []candidate) []candidate {
	// A heap whose root is the least likely that is kept: most rows lose
	// against it with one comparison.
	h := work[:0]
	for i, x := range logits[:k] {
		h = append(h, candidate{id: int32(i), logit: x})
	}
	for i := k/2 - 1; i >= 0; i-- {
		sink(h, i)
	}
	for i := k; i < len(logits) && k > 0; i++ {
		if x := logits[i]; x > h[0].logit { // an equal one has a higher id
			h[0] = candidate{id: int32(i), logit: x}
			sink(h, 0)
		}
	}
	slices.SortFunc(h, func(a, b candidate) int {
		if a.likelier(b) {
			return -1
		}
		return 1
	})
	return h
}

// sink restores the heap below i: no parent is likelier than its children.
func sink(h []candidate, i int) {
	for {
		l := 2*i + 1
		if l >= len(h) {
			return
		}
		if r := l + 1; r < len(h) && h[l].likelier(h[r]) {
			l = r
		}
		if !h[i].likelier(h[l]) {
			return
		}
		h[i], h[l] = h[l], h[i]
		i = l
	}
}

// head returns the fewest of the likeliest candidates whose weights sum to at
// least want, or all, in no order. It moves them to the front of c: it
// partitions around pivots, each time going on with one side only.
func head(c []candidate, want float64) []candidate {
	kept, end := 0, len(c)
	for end-kept > 1 {
		mid := partition(c[kept:end]) + kept
		ahead := mass(c[kept:mid])
		switch {
		case ahead >= want:
			end = mid
		case ahead+c[mid].weight >= want:
			return c[:mid+1]
		default:
			want -= ahead + c[mid].weight
			kept = mid + 1
		}
	}
	return c[:end]
}

// partition moves what is likelier than a pivot before it and the rest behind
// it, and returns the pivot's place. Which it takes depends on c alone.
func partition(c []candidate) int {
	last := len(c) - 1
	mid := last / 2
	// The median of three keeps sorted input from being the worst case.
	if c[mid].likelier(c[0]) {
		c[0], c[mid] = c[mid], c[0]
	}
	if c[last].likelier(c[0]) {
		c[0], c[last] = c[last], c[0]
	}
	if c[mid].likelier(c[last]) {
		c[mid], c[last] = c[last], c[mid]
	}
	at := 0
	for i := range last {
		if c[i].likelier(c[last]) {
			c[i], c[at] = c[at], c[i]
			at++
		}
	}
	c[at], c[last] = c[last], c[at]
	return at
}
