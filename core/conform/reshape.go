package conform

import "math"

// columns returns columns from to to of rows of width values.
func columns(v []float32, width, from, to int) []float32 {
	var out []float32
	for at := 0; at+width <= len(v); at += width {
		out = append(out, v[at+from:at+to]...)
	}
	return out
}

// headsFirst turns [rows, heads, dim] into [heads, rows, dim].
func headsFirst(v []float32, heads, dim int) []float32 {
	rows := len(v) / (heads * dim)
	out := make([]float32, 0, len(v))
	for h := range heads {
		for t := range rows {
			out = append(out, v[(t*heads+h)*dim:][:dim]...)
		}
	}
	return out
}

// exponentials returns e^v of each value.
func exponentials(v []float32) []float32 {
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = float32(math.Exp(float64(x)))
	}
	return out
}
