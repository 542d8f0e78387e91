package metal

const (
	matmulRows    = 32 // of a tile
	matmulOutputs = 64
)

func matmulLaunch(rows, outputs int) launch {
	return launch{grid: grid(ceil(outputs, matmulOutputs), ceil(rows, matmulRows)), threads: 128}
}

// matmul dispatches a product of rows of x with all rows of m, padded to tiles.
func (e *Encoder) matmul(name string, x Binding, m Matrix, y Binding, rows int) {
	outputs := m.tiles() * tileRows
	e.dispatch(e.product(name), matmulLaunch(rows, outputs), matmulArgs{u32(rows), u32(m.Columns), u32(outputs)}, x, m.At, y)
}

// Matmul sets y to x Wᵀ, rounded.
func (e *Encoder) Matmul(x Binding, m Matrix, y Binding, rows int) { e.matmul("matmul", x, m, y, rows) }

// RouteRowsLogits is Matmul for a matrix of 8 bits, its result float32.
func (e *Encoder) RouteRowsLogits(x Binding, m Matrix, y Binding, rows int) {
	e.matmul("route_rows_logits", x, m, y, rows)
}

// MatmulAdd adds x Wᵀ, rounded, to h.
func (e *Encoder) MatmulAdd(x Binding, m Matrix, h Binding, rows int) {
	e.matmul("matmul_add", x, m, h, rows)
}

// MatmulSwiGLU sets y to silu(gate) × up of x Wᵀ, whose columns are gate and up
// in turn.
func (e *Encoder) MatmulSwiGLU(x Binding, m Matrix, y Binding, rows int) {
	e.matmul("matmul_swiglu", x, m, y, rows)
}
