package cpu

// turnKeysFast transposes a block of keys, so that the scores of all heads are
// one product of rows. Columns behind the last key are not looked at.
func turnKeysFast(w *workerScratch, n, dim int) {
	if dim%8 == 0 {
		transpose(w.keysT, w.keys, (n+7)&^7, dim, keyBlock, dim)
	}
}

// foldFast is foldPlain over transposed keys.
func foldFast(w *workerScratch, n int, heads headRows, parts []float32, scale float32) {
	dim := heads.dim
	if dim%8 != 0 {
		foldPlain(w, n, heads, parts, scale)
		return
	}
	matMul(w.scores, heads.q, w.keysT, heads.count, keyBlock, dim, keyBlock, heads.stride, keyBlock, false)
	width := 2 + dim
	for h := range heads.count {
		p, scores := parts[h*width:][:width], w.scores[h*keyBlock:][:n]
		largest := max(p[0], scaleMaxAVX2(&scores[0], n, scale))
		if p[0] != largest {
			scaleAVX2(&p[1], &p[1], 1+dim, exp(p[0]-largest))
			p[0] = largest
		}
		p[1] += expSumAVX2(&scores[0], n, largest)
	}
	matMul(parts[2:], w.scores, w.values, heads.count, dim, n, width, keyBlock, dim, true)
}
