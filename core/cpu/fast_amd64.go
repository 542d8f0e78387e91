package cpu

import (
	"sync"

	"golang.org/x/sys/cpu"
)

//go:generate go -C ../../scripts/kernels run . -family vector -out ../../core/cpu/vector_amd64.s -stubs ../../core/cpu/vector_amd64.go -pkg cpu
//go:generate go -C ../../scripts/kernels run . -family matmul -out ../../core/cpu/matmul_amd64.s -stubs ../../core/cpu/matmul_amd64.go -pkg cpu
//go:generate go -C ../../scripts/kernels run . -family product -out ../../core/cpu/product_amd64.s -stubs ../../core/cpu/product_amd64.go -pkg cpu
//go:generate go -C ../../scripts/kernels run . -family vnni -out ../../core/cpu/vnni_amd64.s -stubs ../../core/cpu/vnni_amd64.go -pkg cpu
//go:generate go -C ../../scripts/kernels run . -family amx -out ../../core/cpu/amx_amd64.s -stubs ../../core/cpu/amx_amd64.go -pkg cpu

// The assembly is made by scripts/kernels. Everything but the products is bound
// by memory or small, and has one version, in AVX2.

var (
	hasAVX2   = cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasBMI2
	hasAVX512 = hasAVX2 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ &&
		cpu.X86.HasAVX512VL && cpu.X86.HasAVX512VNNI
	hasAMX = hasAVX512 && cpu.X86.HasAMXTile && cpu.X86.HasAMXInt8
)

// permitTiles asks the system, once, for leave to use tiles.
var permitTiles = sync.OnceValue(requestTiles)

// fastKernels returns the kernels k, or nil where the processor can't run them.
func fastKernels(k Kernels) *kernels {
	switch {
	case k == AMX && hasAMX && permitTiles():
		return &amx
	case k == AVX512 && hasAVX512:
		return &avx512
	case k == AVX2 && hasAVX2:
		return &avx2
	}
	return nil
}

var avx2 = kernels{
	rmsNorm:    fastRMSNorm,
	gatedNorm:  fastGatedNorm,
	unitNorm:   fastUnitNorm,
	swiGLU:     fastSwiGLU,
	outputGate: fastOutputGate,
	add:        fastAdd,
	addScaled:  fastAddScaled,
	round:      fastRound,
	unpack:     fastUnpack,
	pack:       fastPack,
	conv:       fastConv,
	deltaStep:  fastDeltaStep,
	deltaChunk: fastDeltaChunk,
	turnKeys:   turnKeysFast,
	foldBlock:  foldFast,
	argmax:     fastArgmax,
	read:       fastRead,
	integer: &integerProducts{
		quantise: quantiseAVX2,
		matVec4:  matVec4AVX2, matVec8: matVec8AVX2,
		unpack4: unpack4AVX2, unpack8: unpack8AVX2, unpackParams: unpackParamsAVX2, fetch: fetchAVX2,
		panel: panelRows, strip: 8,
		tiles: []tileKernel{tile1AVX2, tile2AVX2, tile3AVX2, tile4AVX2},
	},
}

var avx512 = func() kernels {
	k, integer := avx2, *avx2.integer
	integer.matVec4 = matVec4VNNI
	integer.tiles = []tileKernel{tile1VNNI, tile2VNNI, tile3VNNI, tile4VNNI, tile5VNNI, tile6VNNI}
	k.integer = &integer
	return k
}()

// amx is avx512 but for the products of prefill.
var amx = func() kernels {
	k, integer := avx512, *avx512.integer
	integer.unpack4, integer.unpack8, integer.unpackParams = unpackUnit4AVX512, unpackUnit8AVX512, unpackUnitParamsAVX2
	integer.panel, integer.strip, integer.tiles = unitPanel, unitRows, nil
	integer.unit = &matrixUnit{quantiseTileAVX512, [...]unitKernel{tiles4AMX, tiles8AMX, tiles12AMX, tiles16AMX}}
	k.integer = &integer
	return k
}()

// roundBits are the dwords that the rounding of the vector kernels takes.
var roundBits = [...][3]uint32{
	BF16: {1, 0x7fff, 0xffff0000},
	F32:  {0, 0, 0xffffffff},
}

func (r Rounding) bits() *[3]uint32 { return &roundBits[r] }

// pause tells the processor that a loop only waits.
func pause() { pauseCPU() }
