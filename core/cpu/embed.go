package cpu

// Embed sets each row of h to the table's row of a token, rounded.
//
//	h      [len(tokens), In]
//	table  [vocab, In]
func Embed(r Rounding, h []float32, table Matrix, tokens []int32) {
	for i, token := range tokens {
		row := h[i*table.In:][:table.In]
		table.dequantise(row, int(token), 0)
		r.values(row)
	}
}
