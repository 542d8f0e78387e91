package cpu

// QMatVec sets y to W x for one row x. Decode only: prompt rows go through
// QMatMul.
//
//	y [Out]  rounded as r says
//	x [In]
//
// With codes counted from their middle (8, or 128 of 256), a quantisation group
// adds scale × Σ code × x + (bias + middle × scale) × Σ x, groups in order. From
// zero the two terms would nearly cancel, and lose the bits that they share.
func QMatVec(r Rounding, y []float32, w Matrix, x []float32) {
	sums := make([]float32, w.In/groupSize)
	groupSums(sums, x)
	qmatvec(r, y, w, 0, w.Out, x, sums)
}

// groupSums sets sums to the sum of each quantisation group of x.
func groupSums(sums, x []float32) {
	for g := range sums {
		var s float32
		for _, v := range x[g*groupSize:][:groupSize] {
			s += v
		}
		sums[g] = s
	}
}

// qmatvec makes rows lo to hi of W x.
func qmatvec(r Rounding, y []float32, w Matrix, lo, hi int, x, sums []float32) {
	bytes := groupSize * w.Bits / 8
	for n := lo; n < hi; n++ {
		first := n * len(sums)
		var sum float32
		for g, xsum := range sums {
			scale, bias := w.params(first + g)
			codes, xg := w.Codes[(first+g)*bytes:][:bytes], (*[64]float32)(x[g*groupSize:])
			var codeSum, middle float32
			if w.Bits == 4 {
				codeSum, middle = dotCodes4((*[32]byte)(codes), xg), 8
			} else {
				codeSum, middle = dotCodes8((*[64]byte)(codes), xg), 128
			}
			sum += scale*codeSum + (bias+middle*scale)*xsum
		}
		y[n] = r.value(sum)
	}
}

// nibbles holds the two codes of every byte, less 8, the low one first.
var nibbles = func() (t [256][2]float32) {
	for b := range t {
		t[b] = [2]float32{float32(b&15) - 8, float32(b>>4) - 8}
	}
	return t
}()

func dotCodes4(codes *[32]byte, x *[64]float32) float32 {
	var s0, s1, s2, s3 float32
	for i := 0; i < 32; i += 2 {
		a, b := &nibbles[codes[i]], &nibbles[codes[i+1]]
		s0 += float32(a[0] * x[2*i])
		s1 += float32(a[1] * x[2*i+1])
		s2 += float32(b[0] * x[2*i+2])
		s3 += float32(b[1] * x[2*i+3])
	}
	return (s0 + s1) + (s2 + s3)
}

// dotCodes8 counts codes from 128.
func dotCodes8(codes *[64]byte, x *[64]float32) float32 {
	var s0, s1, s2, s3 float32
	for i := 0; i < 64; i += 4 {
		s0 += float32((float32(codes[i]) - 128) * x[i])
		s1 += float32((float32(codes[i+1]) - 128) * x[i+1])
		s2 += float32((float32(codes[i+2]) - 128) * x[i+2])
		s3 += float32((float32(codes[i+3]) - 128) * x[i+3])
	}
	return (s0 + s1) + (s2 + s3)
}
