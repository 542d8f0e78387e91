package metal

const (
	routeBlock = 64 // rows that one threadgroup counts and scatters
	groupRows  = 16 // of a tile of an expert
	// tensorOutputs is the outputs of such a tile on matrix units.
	tensorOutputs = 128
)

// Routing is what prompt rows' choices become on the device.
type Routing struct {
	Logits  Binding // [rows, experts and the shared one, padded]
	Experts Binding // [rows, chosen]
	Weights Binding // [rows, chosen + 1]
	Counts  Binding // [blocks, experts]
	Tiles   Binding // [most tiles] of three
	Entries Binding // [rows × chosen]
}

// mostTiles returns how many tiles rows' choices can need: a full one for every
// 16 entries, and a ragged one for each expert.
func (s ExpertsShape) mostTiles(rows int) int { return rows*s.Chosen/groupRows + s.Experts }

func (s ExpertsShape) routeArgs(rows int) routeArgs {
	return routeArgs{u32(rows), u32(s.Experts), u32(s.Chosen), u32(align(s.Experts+1, tileRows))}
}

// RouteRows chooses the experts of rows, and their weights.
func (e *Encoder) RouteRows(s ExpertsShape, r Routing, rows int) {
	e.dispatch(named("route_rows"), launch{grid: grid(ceil(rows, 4)), threads: 128}, s.routeArgs(rows), r.Logits, r.Experts, r.Weights)
}

// SortRows chooses the experts of rows and sorts the choices by expert.
func (e *Encoder) SortRows(s ExpertsShape, r Routing, rows int) {
	e.RouteRows(s, r, rows)
	args, blocks := s.routeArgs(rows), ceil(rows, routeBlock)
	e.dispatch(named("count_experts"), launch{grid: grid(blocks), threads: 256}, args, r.Experts, r.Counts)
	e.dispatch(named("place_experts"), launch{grid: grid(1), threads: 256}, args, r.Counts, r.Tiles)
	e.dispatch(named("scatter_experts"), launch{grid: grid(blocks), threads: 256}, args, r.Experts, r.Counts, r.Entries)
}

// ExpertRows makes the output of every row's every expert: y [rows × chosen,
// hidden]. inner has room for [rows × chosen, expert dim].
func (e *Encoder) ExpertRows(s ExpertsShape, x Experts, r Routing, in, inner, y Binding, rows int) {
	tiles, outputs := s.mostTiles(rows), matmulOutputs
	if e.tensor {
		outputs = tensorOutputs
	}
	e.dispatch(e.product("expert_gate_up_rows"), launch{grid: grid(ceil(2*s.ExpertDim, outputs), tiles), threads: 128},
		groupedArgs{u32(s.Hidden), u32(2 * s.ExpertDim), u32(s.Chosen)}, r.Tiles, r.Entries, in, x.GateUp.At, inner)
	e.dispatch(e.product("expert_down_rows"), launch{grid: grid(ceil(s.Hidden, outputs), tiles), threads: 128},
		groupedArgs{u32(s.ExpertDim), u32(s.Hidden), 1}, r.Tiles, r.Entries, inner, x.Down.At, y)
}

// CombineRows adds the weighted sum of the experts of each row to h.
func (e *Encoder) CombineRows(s ExpertsShape, weights, y, shared, h Binding, rows int) {
	e.dispatch(named("combine_rows"), launch{grid: grid(rows), threads: 256}, combineArgs{u32(rows), u32(s.Hidden), u32(s.Chosen)},
		weights, y, shared, h)
}
