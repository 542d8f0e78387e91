package cpu

// DeltaStep is the gated delta rule for one row and one value head. Decode
// only: prompt rows go through DeltaChunk.
//
//	S = decay × S;  d = beta × (v - S k);  S = S + d kᵀ;  o = S q
//
//	o, v  [value dim]; o is rounded
//	s     [value dim, key dim], the recurrent state, changed in place
//	q, k  [key dim]
//
// decay is exp of the log-decay that Gates makes.
func DeltaStep(r Rounding, o, s, q, k, v []float32, decay, beta float32) {
	for i, value := range v {
		row := s[i*len(k):][:len(k)]
		for j := range row {
			row[j] *= decay
		}
		d := beta * (value - dot(row, k))
		for j, x := range k {
			row[j] += d * x
		}
		o[i] = r.value(dot(row, q))
	}
}
