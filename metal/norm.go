package metal

// NormaliseRows sets rows of y to the RMSNorm of those of x.
func (e *Encoder) NormaliseRows(x, w, y Binding, rows, width int, eps float32) {
	e.dispatch(named("normalise_rows"), launch{grid: grid(rows), threads: 128}, normArgs{u32(width), eps}, x, w, y)
}
