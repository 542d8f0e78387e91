package metal

const (
	// fewTiles is up to how many tiles a matrix is shared out in threadgroups of
	// two simdgroups: of eight there would be too few to fill a GPU.
	fewTiles = 512
	// fullTiles is about how many simdgroups share larger ones.
	fullTiles = 576
	// mostEach is the most tiles of a simdgroup.
	mostEach = 8
)

// projectLaunch shares a matrix's tiles out, each to a simdgroup.
func projectLaunch(tiles int) (l launch, each int) {
	l.threads, each = 256, min(max(1, tiles/fullTiles), mostEach)
	if tiles <= fewTiles {
		l.threads = 64
	}
	l.grid = grid(ceil(tiles, each*l.threads/simdWidth))
	return l, each
}

// normed adds the threadgroup memory of a normalised row.
func (l launch) normed(columns int) launch {
	l.shared = align(2*columns, 16)
	return l
}

// projection is a kernel of one row's projection by a matrix of that many columns.
func projection(name string, columns int) Kernel {
	return Kernel{name, [4]uint32{u32(columns)}}
}

// ProjectNormed sets y to W RMSNorm(h) for one row, rounded.
func (e *Encoder) ProjectNormed(h, norm Binding, m Matrix, y Binding, eps float32) {
	e.projectNormed("project_normed", h, norm, m, y, eps)
}

// RouteNormed is ProjectNormed for a matrix of 8 bits, its result float32.
func (e *Encoder) RouteNormed(h, norm Binding, m Matrix, y Binding, eps float32) {
	e.projectNormed("route_normed", h, norm, m, y, eps)
}

func (e *Encoder) projectNormed(name string, h, norm Binding, m Matrix, y Binding, eps float32) {
	l, each := projectLaunch(m.tiles())
	e.dispatch(projection(name, m.Columns), l.normed(m.Columns), projectArgs{u32(m.tiles()), u32(each), eps}, h, norm, m.At, y)
}

// ProjectAdd adds W x, rounded, to the row h.
func (e *Encoder) ProjectAdd(x Binding, m Matrix, h Binding) {
	l, each := projectLaunch(m.tiles())
	e.dispatch(projection("project_add", m.Columns), l, projectArgs{u32(m.tiles()), u32(each), 0}, x, m.At, h)
}

// headLaunch shares the tiles of the head out.
func headLaunch(vocab int) (l launch, each int) { return projectLaunch(ceil(vocab, tileRows)) }

// headParts returns how many parts Head leaves for Argmax.
func headParts(vocab int) int {
	l, _ := headLaunch(vocab)
	return int(l.grid[0])
}

// Head makes the logits of one row, and the parts that Argmax takes.
func (e *Encoder) Head(h, norm Binding, m Matrix, logits, parts Binding, eps float32) {
	l, each := headLaunch(m.Rows)
	e.dispatch(projection("head", m.Columns), l.normed(m.Columns), headArgs{u32(m.Rows), u32(each), eps}, h, norm, m.At, logits, parts)
}

// Argmax sets token to that of the largest logit, of equals the lowest, and to
// -1 where any is not a number.
func (e *Encoder) Argmax(parts Binding, vocab int, token Binding) {
	e.dispatch(named("argmax"), launch{grid: grid(1), threads: maxThreads}, argmaxArgs{u32(headParts(vocab))}, parts, token)
}
