package metal

// fewTiles is up to how many tiles a matrix is shared out in threadgroups of two
// simdgroups: of eight there would be too few to fill a GPU.
const fewTiles = 512

// projectLaunch shares a matrix's tiles out, one a simdgroup.
func projectLaunch(m Matrix) launch {
	threads := 256
	if m.tiles() <= fewTiles {
		threads = 64
	}
	return launch{grid: grid(ceil(m.tiles(), threads/simdWidth)), threads: threads}
}

// normed adds the threadgroup memory of a normalised row.
func (l launch) normed(columns int) launch {
	l.shared = align(2*columns, 16)
	return l
}

// ProjectNormed sets y to W RMSNorm(h) for one row, rounded.
func (e *Encoder) ProjectNormed(h, norm Binding, m Matrix, y Binding, eps float32) {
	e.dispatch("project_normed", projectLaunch(m).normed(m.Columns),
		projectArgs{u32(m.Columns), u32(m.tiles()), eps}, h, norm, m.At, y)
}

// RouteNormed is ProjectNormed for a matrix of 8 bits, its result float32.
func (e *Encoder) RouteNormed(h, norm Binding, m Matrix, y Binding, eps float32) {
	e.dispatch("route_normed", projectLaunch(m).normed(m.Columns),
		projectArgs{u32(m.Columns), u32(m.tiles()), eps}, h, norm, m.At, y)
}

// ProjectAdd adds W x, rounded, to the row h.
func (e *Encoder) ProjectAdd(x Binding, m Matrix, h Binding) {
	e.dispatch("project_add", projectLaunch(m), projectArgs{Columns: u32(m.Columns), Tiles: u32(m.tiles())}, x, m.At, h)
}

// headThreads is the threads of a threadgroup of Head.
const headThreads = 256

// headParts returns how many parts Head leaves for Argmax.
func headParts(vocab int) int { return ceil(ceil(vocab, tileRows), headThreads/simdWidth) }

// Head makes the logits of one row, and the parts that Argmax takes.
func (e *Encoder) Head(h, norm Binding, m Matrix, logits, parts Binding, eps float32) {
	e.dispatch("head", launch{grid: grid(headParts(m.Rows)), threads: headThreads}.normed(m.Columns),
		headArgs{u32(m.Columns), u32(m.Rows), eps}, h, norm, m.At, logits, parts)
}

// Argmax sets token to that of the largest logit, of equals the lowest, and to
// -1 where any is not a number.
func (e *Encoder) Argmax(parts Binding, vocab int, token Binding) {
	e.dispatch("argmax", launch{grid: grid(1), threads: maxThreads}, argmaxArgs{u32(headParts(vocab))}, parts, token)
}
