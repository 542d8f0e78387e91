package cpu

import "math"

// inverseRMSFast returns 1 / sqrt(mean(x²) + eps).
func inverseRMSFast(x []float32, eps float32) float32 {
	mean := dotAVX2(&x[0], &x[0], len(x)) / float32(len(x))
	return float32(1 / math.Sqrt(float64(mean+eps)))
}

func fastRMSNorm(r Rounding, y, x, w []float32, eps float32) {
	width := len(w)
	for len(x) > 0 {
		normAVX2(&y[0], &x[0], &w[0], width, inverseRMSFast(x[:width], eps), r.bits())
		x, y = x[width:], y[width:]
	}
}

func fastGatedNorm(r Rounding, y, x, z, w []float32, eps float32) {
	fastRMSNorm(r, y, x, w, eps)
	siluAVX2(&y[0], &y[0], &z[0], len(y), r.bits())
}

func fastUnitNorm(r Rounding, x []float32, width int, scale float32) {
	root := float32(math.Sqrt(float64(width)))
	for ; len(x) > 0; x = x[width:] {
		unitAVX2(&x[0], width, inverseRMSFast(x[:width], unitEps/float32(width)), scale/root, r.bits())
	}
}

func fastSwiGLU(r Rounding, gate, up []float32) {
	siluAVX2(&gate[0], &up[0], &gate[0], len(gate), r.bits())
}

func fastOutputGate(r Rounding, x, gate []float32) {
	outputGateAVX2(&x[0], &gate[0], len(x), r.bits())
}

func fastAdd(r Rounding, h, y []float32) { addAVX2(&h[0], &y[0], len(h), r.bits()) }

func fastRound(r Rounding, x []float32) {
	if r != F32 {
		roundAVX2(&x[0], len(x), r.bits())
	}
}

func fastUnpack(r Rounding, dst []float32, src []byte) {
	whole := len(dst) &^ 7
	if r == F32 || whole == 0 {
		r.unpack(dst, src)
		return
	}
	src = src[:2*len(dst)]
	widenAVX2(&dst[0], &src[0], whole)
	r.unpack(dst[whole:], src[2*whole:])
}

func fastPack(r Rounding, dst []byte, src []float32) {
	whole := len(src) &^ 7
	if r == F32 || whole == 0 {
		r.pack(dst, src)
		return
	}
	dst = dst[:2*len(src)]
	narrowAVX2(&dst[0], &src[0], whole, r.bits())
	r.pack(dst[2*whole:], src[whole:])
}

func fastRead(b []byte) uint32 {
	whole := len(b) &^ 255
	sum := readPlain(b[whole:])
	if whole > 0 {
		sum ^= math.Float32bits(readAVX2(&b[0], whole))
	}
	return sum
}

func fastConv(r Rounding, y, x, w []float32, rows, channels, lo, hi int) {
	if len(w) != 4*channels {
		Conv(r, y, x, w, rows, channels, lo, hi)
		return
	}
	if lo == hi {
		return
	}
	for t := range rows {
		at := t*channels + lo
		conv4AVX2(&y[at], &x[at], &w[lo], hi-lo, channels, r.bits())
	}
}

func fastAddScaled(y, w, x []float32, stride int) {
	if len(y)%8 != 0 {
		addScaled(y, w, x, stride)
		return
	}
	if len(w) > 0 {
		matMul1AVX2(&y[0], &w[0], &x[0], len(y), len(w), 0, 0, 4*stride, true)
	}
}

// matMul sets c [m, n] to a [m, k] × b [k, n], or adds it; n is a multiple of
// 8, and rows lie strides apart. Every value is one chain of fused products, k
// ascending.
func matMul(c, a, b []float32, m, n, k, cStride, aStride, bStride int, add bool) {
	if k == 0 {
		panic("cpu: a product of no columns")
	}
	i := 0
	for ; i+4 <= m; i += 4 {
		matMul4AVX2(&c[i*cStride], &a[i*aStride], &b[0], n, k, 4*cStride, 4*aStride, 4*bStride, add)
	}
	for ; i < m; i++ {
		matMul1AVX2(&c[i*cStride], &a[i*aStride], &b[0], n, k, 4*cStride, 4*aStride, 4*bStride, add)
	}
}

// transpose sets y [n, m] to the transpose of x [m, n], both multiples of 8.
func transpose(y, x []float32, m, n, yStride, xStride int) {
	for i := 0; i < m; i += 8 {
		transpose8AVX2(&y[i], &x[i*xStride], n, 4*yStride, 4*xStride)
	}
}

func fastArgmax(logits []float32) int32 {
	whole := len(logits) &^ 31
	if whole == 0 {
		return Argmax(logits)
	}
	largest := largestAVX2(&logits[0], whole)
	for _, v := range logits[whole:] {
		largest = max(largest, v)
	}
	if largest != largest || math.IsInf(float64(largest), 0) {
		return -1
	}
	i := indexAVX2(&logits[0], whole, largest)
	for logits[i] != largest {
		i++
	}
	return int32(i)
}
