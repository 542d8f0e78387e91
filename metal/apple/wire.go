package apple

// handle names an object of the shim's; 0 is none.
type handle uint64

// The structs of shim_darwin.h.

// deviceFacts is calla_facts.
type deviceFacts struct {
	Device    uint64
	Family    uint32
	Unified   uint32
	Residency uint32
	Metal4    uint32
}

// pipelineSpec is calla_pipeline_spec.
type pipelineSpec struct {
	Library           handle
	Archive           handle
	Constants         [4]uint32
	ArchivedOnly      uint32
	Add               uint32
	MostThreads       uint32
	SIMDWidth         uint32
	ThreadgroupMemory uint32
	Reserved          uint32
}

// Flags of a record.
const (
	barrier      = 1 << iota // waits for all dispatches before it in its encoder
	newCommand               // the first of a command buffer
	newEncoder               // the first of an encoder
	waitsFence               // its encoder waits for the fence first
	updatesFence             // the last of its encoder, which updates the fence
)

// record is calla_record: a dispatch.
type record struct {
	Pipeline  handle
	Flags     uint32
	Binding   uint32
	Bindings  uint32
	Args      uint32
	ArgsBytes uint32
	Groups    [3]uint32
	Threads   uint32
	Shared    uint32
	Label     uint32
	Reserved  uint32
}

// binding is calla_binding.
type binding struct {
	Buffer handle
	Offset uint64
}

// move is calla_move: a copy, or zeros where there is no buffer to copy from.
type move struct {
	From       handle
	FromOffset uint64
	To         handle
	ToOffset   uint64
	Bytes      uint64
}

// States of a command buffer.
const (
	underWay = iota
	succeeded
	failed
)

// result is calla_result.
type result struct {
	State   uint32
	Encoder int32
	Begun   float64
	Ended   float64
}
