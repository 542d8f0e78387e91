package cpu

// Gates makes the two gates of the delta rule for every row and value head, in
// place.
//
//	b  [rows, heads]  becomes beta = sigmoid(b), rounded
//	a  [rows, heads]  becomes the log-decay -rate × softplus(a + dt), at most 0
//	                  and never rounded
//	rate, dt  [heads]; rate = exp(A_log)
func Gates(r Rounding, b, a, rate, dt []float32) {
	Sigmoid(r, b)
	for ; len(a) > 0; a = a[len(rate):] {
		for h, v := range rate {
			a[h] = -v * softplus(a[h]+dt[h])
		}
	}
}
