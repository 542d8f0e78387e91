package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// expPoly is the Taylor series of e^r from r^6 down to r^2: for |r| ≤ ln 2 / 2
// what it leaves out is 1.2e-7 of the value at most.
var expPoly = []float64{1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5}

var constants struct {
	least, log2e, ln2High, ln2Low, one, sign Mem
	poly                                     []Mem
}

// makeConstants puts the family's constants in memory. ln 2 is in two parts, so
// that n × ln 2 is exact enough for every n.
func makeConstants() {
	f32 := func(name string, v float64) Mem { return dwords(name, math.Float32bits(float32(v))) }
	c := &constants
	c.least = f32("expLeast", -88)
	c.log2e = f32("log2e", math.Log2E)
	c.ln2High, c.ln2Low = f32("ln2High", 0.693359375), f32("ln2Low", math.Ln2-0.693359375)
	c.one, c.sign = f32("one", 1), dwords("signBit", 1<<31)
	for i, v := range expPoly {
		c.poly = append(c.poly, f32("expPoly"+string(rune('0'+6-i)), v))
	}
	tailMasks = GLOBL("tailMasks", RODATA|NOPTR)
	for i := range 16 {
		v := uint32(0)
		if i < 8 {
			v = 0xffffffff
		}
		DATA(4*i, U32(v))
	}
}

// expConstants are those that live in registers; the polynomial's are read from
// memory.
type expConstants struct{ one reg.VecVirtual }

func loadExp() expConstants {
	e := expConstants{YMM()}
	VBROADCASTSS(constants.one, e.one)
	return e
}

// exp returns e^x for x ≤ 0, 0 below -87.7 and NaN for NaN.
func (e expConstants) exp(x reg.VecVirtual) reg.VecVirtual {
	c, r, n, t := &constants, YMM(), YMM(), YMM()
	VBROADCASTSS(c.least, t)
	VMAXPS(x, t, r) // x last: it is the result where it is a NaN
	VBROADCASTSS(c.log2e, t)
	VMULPS(r, t, n)
	VROUNDPS(Imm(0), n, n)
	VBROADCASTSS(c.ln2High, t)
	VFNMADD231PS(t, n, r)
	VBROADCASTSS(c.ln2Low, t)
	VFNMADD231PS(t, n, r)
	p := YMM()
	VBROADCASTSS(c.poly[0], p)
	for _, k := range c.poly[1:] {
		VBROADCASTSS(k, t)
		VFMADD213PS(t, r, p)
	}
	VFMADD213PS(e.one, r, p)
	VFMADD213PS(e.one, r, p)
	VCVTPS2DQ(n, n)
	VPSLLD(Imm(23), n, n)
	// n = -127 makes exponent and value 0.
	VPADDD(e.one, n, n)
	VMULPS(n, p, p)
	return p
}

// sigmoid returns 1 / (1 + e^-x), from e^-|x|, which never overflows.
func (e expConstants) sigmoid(x reg.VecVirtual) reg.VecVirtual {
	minus, sign := YMM(), YMM()
	VBROADCASTSS(constants.sign, sign)
	VORPS(sign, x, minus)
	t := e.exp(minus)
	top, bottom := YMM(), YMM()
	VADDPS(e.one, t, bottom)
	// The sign bit of x chooses.
	VBLENDVPS(x, t, e.one, top)
	VDIVPS(bottom, top, top)
	return top
}
