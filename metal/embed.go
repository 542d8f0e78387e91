package metal

// Embed sets rows of h to the table's rows of tokens.
func (e *Encoder) Embed(tokens Binding, table Matrix, h Binding, rows int) {
	e.dispatch(named("embed"), launch{grid: grid(rows), threads: 128}, embedArgs{u32(table.Columns)}, tokens, table.At, h)
}
