package metal

import (
	"encoding/binary"
	"math"
)

// Argument structs of the kernels, twins of those in shaders/args.h. Fields are
// four bytes each, so neither side pads.

type embedArgs struct{ Hidden uint32 }

type normArgs struct {
	Width uint32
	Eps   float32
}

type projectArgs struct {
	Tiles, Each uint32
	Eps         float32
}

type headArgs struct {
	Vocab, Each uint32
	Eps         float32
}

type argmaxArgs struct{ Parts uint32 }

type deltaArgs struct {
	Rows, Width uint32
	Z, B, A     uint32
	Eps         float32
}

type chunkArgs struct{ First, Chunks uint32 }

type prepareArgs struct {
	Rows, From, Width uint32
	K, V              uint32
	HalfRotary        uint32
	Eps               float32
}

type attendArgs struct {
	Rows, From, Width uint32
	Span, Spans       uint32
	Scale             float32
}

type expertsArgs struct {
	Experts, Each uint32
	Eps           float32
}

type routeArgs struct{ Rows, Experts, Chosen, Stride uint32 }

type matmulArgs struct{ Rows, Columns, Outputs uint32 }

type groupedArgs struct{ Columns, Outputs, Chosen uint32 }

type copyArgs struct{ Count, Each uint32 }

type combineArgs struct{ Rows, Hidden, Chosen uint32 }

// argBytes lays an argument struct out as the kernels read it.
func argBytes(args any) []byte {
	b, err := binary.Append(nil, binary.LittleEndian, args)
	if err != nil {
		panic(err)
	}
	return b
}

func float32frombits(v uint32) float32 { return math.Float32frombits(v) }
