package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The vector family needs AVX2 and FMA.
func vectorFamily() {
	makeConstants()
	roundKernel()
	addKernel()
	normKernel()
	unitKernel()
	siluKernel()
	outputGateKernel()
	convKernel()
	dotKernel()
	maxKernel()
	largestKernel()
	indexKernel()
	expKernel()
	scaleKernel()
	widenKernel()
	narrowKernel()
	deltaStepKernel()
	readKernel()
	pauseKernel()
}

// loop runs over n values of float32 arrays, eight at a time and then the rest
// under a mask.
type loop struct {
	offset reg.GPVirtual
	mask   reg.VecVirtual // of the rest; nil for whole vectors
}

var tailMasks Mem // eight dwords of ones, then eight of zeros

// each emits body for whole vectors and for the rest.
func each(n reg.GPVirtual, body func(l *loop)) {
	l := &loop{offset: GP64()}
	XORQ(l.offset, l.offset)
	SUBQ(Imm(8), n)
	JL(LabelRef("rest"))
	Label("whole")
	body(l)
	ADDQ(Imm(32), l.offset)
	SUBQ(Imm(8), n)
	JGE(LabelRef("whole"))
	Label("rest")
	ADDQ(Imm(8), n)
	JZ(LabelRef("done"))
	p, mask := GP64(), YMM()
	LEAQ(tailMasks, p)
	SHLQ(Imm(2), n)
	SUBQ(n, p)
	VMOVDQU(at(p, 32), mask)
	body(&loop{l.offset, mask})
	Label("done")
}

func (l *loop) load(base reg.Register) reg.VecVirtual {
	y := YMM()
	if l.mask != nil {
		VMASKMOVPS(by(base, l.offset, 0), l.mask, y)
	} else {
		VMOVUPS(by(base, l.offset, 0), y)
	}
	return y
}

func (l *loop) store(y reg.VecVirtual, base reg.Register) {
	if l.mask != nil {
		VMASKMOVPS(y, l.mask, by(base, l.offset, 0))
	} else {
		VMOVUPS(y, by(base, l.offset, 0))
	}
}

// rounder rounds as three dwords in memory say: what the lowest kept bit counts,
// a little less than half of it, and the bits that are kept. To bfloat16 they
// are 1, 0x7fff and 0xffff0000; 0, 0 and all ones round nothing. An infinity
// stays one, and so does a NaN, for ours have no low bits.
type rounder struct{ lowest, half, keep reg.VecVirtual }

func loadRounder() rounder {
	p := Load(Param("rounding"), GP64())
	r := rounder{YMM(), YMM(), YMM()}
	VPBROADCASTD(at(p, 0), r.lowest)
	VPBROADCASTD(at(p, 4), r.half)
	VPBROADCASTD(at(p, 8), r.keep)
	return r
}

func (r rounder) round(y reg.VecVirtual) {
	t := YMM()
	VPSRLD(Imm(16), y, t)
	VPAND(r.lowest, t, t)
	VPADDD(r.half, t, t)
	VPADDD(t, y, y)
	VPAND(r.keep, y, y)
}

func ret() {
	VZEROUPPER()
	RET()
}

func roundKernel() {
	TEXT("roundAVX2", NOSPLIT, "func(x *float32, n int, rounding *[3]uint32)")
	Pragma("noescape")
	Doc("roundAVX2 rounds n values in place.")
	x, n := Load(Param("x"), GP64()), Load(Param("n"), GP64())
	r := loadRounder()
	each(n.(reg.GPVirtual), func(l *loop) {
		v := l.load(x)
		r.round(v)
		l.store(v, x)
	})
	ret()
}

func addKernel() {
	TEXT("addAVX2", NOSPLIT, "func(h, y *float32, n int, rounding *[3]uint32)")
	Pragma("noescape")
	Doc("addAVX2 adds n values y to h and rounds.")
	h, y, n := Load(Param("h"), GP64()), Load(Param("y"), GP64()), Load(Param("n"), GP64())
	r := loadRounder()
	each(n.(reg.GPVirtual), func(l *loop) {
		a, b := l.load(h), l.load(y)
		VADDPS(b, a, a)
		r.round(a)
		l.store(a, h)
	})
	ret()
}

func broadcastParam(name string) reg.VecVirtual {
	x := XMM()
	Load(Param(name), x)
	y := YMM()
	VBROADCASTSS(x, y)
	return y
}

func normKernel() {
	TEXT("normAVX2", NOSPLIT, "func(y, x, w *float32, n int, scale float32, rounding *[3]uint32)")
	Pragma("noescape")
	Doc("normAVX2 sets n values y to x × scale, rounded, × w, rounded.")
	y, x, w := Load(Param("y"), GP64()), Load(Param("x"), GP64()), Load(Param("w"), GP64())
	n := Load(Param("n"), GP64())
	scale, r := broadcastParam("scale"), loadRounder()
	each(n.(reg.GPVirtual), func(l *loop) {
		v := l.load(x)
		VMULPS(scale, v, v)
		r.round(v)
		VMULPS(l.load(w), v, v)
		r.round(v)
		l.store(v, y)
	})
	ret()
}

func unitKernel() {
	TEXT("unitAVX2", NOSPLIT, "func(x *float32, n int, inverse, scale float32, rounding *[3]uint32)")
	Pragma("noescape")
	Doc("unitAVX2 multiplies n values by inverse, rounds, multiplies by scale and rounds.")
	x, n := Load(Param("x"), GP64()), Load(Param("n"), GP64())
	inverse, scale, r := broadcastParam("inverse"), broadcastParam("scale"), loadRounder()
	each(n.(reg.GPVirtual), func(l *loop) {
		v := l.load(x)
		VMULPS(inverse, v, v)
		r.round(v)
		VMULPS(scale, v, v)
		r.round(v)
		l.store(v, x)
	})
	ret()
}

func siluKernel() {
	TEXT("siluAVX2", NOSPLIT, "func(y, x, z *float32, n int, rounding *[3]uint32)")
	Pragma("noescape")
	Doc("siluAVX2 sets n values y to x × silu(z), rounded; y may be x or z.")
	y, x, z := Load(Param("y"), GP64()), Load(Param("x"), GP64()), Load(Param("z"), GP64())
	n := Load(Param("n"), GP64())
	r, e := loadRounder(), loadExp()
	each(n.(reg.GPVirtual), func(l *loop) {
		v := l.load(z)
		s := e.sigmoid(v)
		VMULPS(s, v, v)
		VMULPS(l.load(x), v, v)
		r.round(v)
		l.store(v, y)
	})
	ret()
}

func outputGateKernel() {
	TEXT("outputGateAVX2", NOSPLIT, "func(x, gate *float32, n int, rounding *[3]uint32)")
	Pragma("noescape")
	Doc("outputGateAVX2 multiplies n values x by sigmoid(gate), rounded, and rounds.")
	x, gate, n := Load(Param("x"), GP64()), Load(Param("gate"), GP64()), Load(Param("n"), GP64())
	r, e := loadRounder(), loadExp()
	each(n.(reg.GPVirtual), func(l *loop) {
		s := e.sigmoid(l.load(gate))
		r.round(s)
		VMULPS(l.load(x), s, s)
		r.round(s)
		l.store(s, x)
	})
	ret()
}

func convKernel() {
	TEXT("conv4AVX2", NOSPLIT, "func(y, x, w *float32, n, channels int, rounding *[3]uint32)")
	Pragma("noescape")
	Doc("conv4AVX2 is one row of a convolution of four taps, then silu, for n channels; rows of x and w lie channels values apart.")
	y, x, w := Load(Param("y"), GP64()), Load(Param("x"), GP64()), Load(Param("w"), GP64())
	n := Load(Param("n"), GP64())
	step := Load(Param("channels"), GP64())
	SHLQ(Imm(2), step)
	r, e := loadRounder(), loadExp()
	xs, ws := []reg.Register{x, GP64(), GP64(), GP64()}, []reg.Register{w, GP64(), GP64(), GP64()}
	for j := 1; j < 4; j++ {
		LEAQ(by(xs[j-1], step, 0), xs[j])
		LEAQ(by(ws[j-1], step, 0), ws[j])
	}
	each(n.(reg.GPVirtual), func(l *loop) {
		v := l.load(xs[0])
		VMULPS(l.load(ws[0]), v, v)
		for j := 1; j < 4; j++ {
			VFMADD231PS(l.load(xs[j]), l.load(ws[j]), v)
		}
		r.round(v)
		s := e.sigmoid(v)
		VMULPS(s, v, v)
		r.round(v)
		l.store(v, y)
	})
	ret()
}

// fold adds up, or takes the maximum of, the eight lanes of a vector.
func fold(y reg.VecVirtual, op func(ops ...Op)) reg.VecVirtual {
	x, t := XMM(), XMM()
	VEXTRACTF128(Imm(1), y, x)
	op(y.AsX(), x, x)
	VPERMILPD(Imm(1), x, t)
	op(t, x, x)
	VPERMILPS(Imm(1), x, t)
	op(t, x, x)
	return x
}

func dotKernel() {
	TEXT("dotAVX2", NOSPLIT, "func(a, b *float32, n int) float32")
	Pragma("noescape")
	Doc("dotAVX2 returns the product of two vectors of n values.")
	a, b, n := Load(Param("a"), GP64()), Load(Param("b"), GP64()), Load(Param("n"), GP64())
	sum := YMM()
	VXORPS(sum, sum, sum)
	each(n.(reg.GPVirtual), func(l *loop) { VFMADD231PS(l.load(a), l.load(b), sum) })
	x := fold(sum, func(ops ...Op) { VADDPS(ops[0], ops[1], ops[2]) })
	Store(x, ReturnIndex(0))
	ret()
}

func maxKernel() {
	TEXT("scaleMaxAVX2", NOSPLIT, "func(x *float32, n int, scale float32) float32")
	Pragma("noescape")
	Doc("scaleMaxAVX2 multiplies n values by scale and returns the largest product.")
	x, n := Load(Param("x"), GP64()), Load(Param("n"), GP64())
	scale, largest, least := broadcastParam("scale"), YMM(), YMM()
	VBROADCASTSS(dwords("minusInfinity", math.Float32bits(float32(math.Inf(-1)))), least)
	VMOVAPS(least, largest)
	each(n.(reg.GPVirtual), func(l *loop) {
		v := l.load(x)
		VMULPS(scale, v, v)
		l.store(v, x)
		if l.mask != nil {
			VBLENDVPS(l.mask, v, least, v)
		}
		VMAXPS(v, largest, largest)
	})
	m := fold(largest, func(ops ...Op) { VMAXPS(ops[0], ops[1], ops[2]) })
	Store(m, ReturnIndex(0))
	ret()
}

func expKernel() {
	TEXT("expSumAVX2", NOSPLIT, "func(x *float32, n int, largest float32) float32")
	Pragma("noescape")
	Doc("expSumAVX2 replaces n values x by exp(x - largest) and returns their sum.")
	x, n := Load(Param("x"), GP64()), Load(Param("n"), GP64())
	largest, e, sum := broadcastParam("largest"), loadExp(), YMM()
	VXORPS(sum, sum, sum)
	each(n.(reg.GPVirtual), func(l *loop) {
		v := l.load(x)
		VSUBPS(largest, v, v)
		w := e.exp(v)
		l.store(w, x)
		if l.mask != nil {
			VANDPS(l.mask, w, w)
		}
		VADDPS(w, sum, sum)
	})
	s := fold(sum, func(ops ...Op) { VADDPS(ops[0], ops[1], ops[2]) })
	Store(s, ReturnIndex(0))
	ret()
}

func scaleKernel() {
	TEXT("scaleAVX2", NOSPLIT, "func(y, x *float32, n int, scale float32)")
	Pragma("noescape")
	Doc("scaleAVX2 sets n values y to x × scale.")
	y, x, n := Load(Param("y"), GP64()), Load(Param("x"), GP64()), Load(Param("n"), GP64())
	scale := broadcastParam("scale")
	each(n.(reg.GPVirtual), func(l *loop) {
		v := l.load(x)
		VMULPS(scale, v, v)
		l.store(v, y)
	})
	ret()
}

func widenKernel() {
	TEXT("widenAVX2", NOSPLIT, "func(y *float32, x *byte, n int)")
	Pragma("noescape")
	Doc("widenAVX2 widens n bfloat16 values, a multiple of 8.")
	y, x, n := Load(Param("y"), GP64()), Load(Param("x"), GP64()), Load(Param("n"), GP64())
	Label("widen")
	v := YMM()
	VPMOVZXWD(at(x, 0), v)
	VPSLLD(Imm(16), v, v)
	VMOVDQU(v, at(y, 0))
	ADDQ(Imm(16), x)
	ADDQ(Imm(32), y)
	SUBQ(Imm(8), n)
	JNZ(LabelRef("widen"))
	ret()
}

func narrowKernel() {
	TEXT("narrowAVX2", NOSPLIT, "func(y *byte, x *float32, n int, rounding *[3]uint32)")
	Pragma("noescape")
	Doc("narrowAVX2 rounds n values, a multiple of 8, to bfloat16 and stores those.")
	y, x, n := Load(Param("y"), GP64()), Load(Param("x"), GP64()), Load(Param("n"), GP64())
	r := loadRounder()
	Label("narrow")
	v, h := YMM(), XMM()
	VMOVUPS(at(x, 0), v)
	r.round(v)
	VPSRLD(Imm(16), v, v)
	VEXTRACTI128(Imm(1), v, h)
	VPACKUSDW(h, v.AsX(), h)
	VMOVDQU(h, at(y, 0))
	ADDQ(Imm(16), y)
	ADDQ(Imm(32), x)
	SUBQ(Imm(8), n)
	JNZ(LabelRef("narrow"))
	ret()
}

func pauseKernel() {
	TEXT("pauseCPU", NOSPLIT, "func()")
	Doc("pauseCPU tells the processor that a loop only waits.")
	PAUSE()
	RET()
}

// readKernel loads and does nothing else: four chains of exclusive ors keep the loads
// from being left out.
func readKernel() {
	TEXT("readAVX2", NOSPLIT, "func(x *byte, n int) float32")
	Pragma("noescape")
	Doc("readAVX2 reads n bytes, a multiple of 256, and returns 32 bits of their exclusive or.")
	x, n := Load(Param("x"), GP64()), Load(Param("n"), GP64())
	sums := zeros(4)
	Label("read")
	for i := range 8 {
		VPXOR(at(x, 32*i), sums[i%4], sums[i%4])
	}
	ADDQ(U32(256), x)
	SUBQ(U32(256), n)
	JNZ(LabelRef("read"))
	VPXOR(sums[1], sums[0], sums[0])
	VPXOR(sums[3], sums[2], sums[2])
	VPXOR(sums[2], sums[0], sums[0])
	Store(sums[0].AsX(), ReturnIndex(0))
	ret()
}
