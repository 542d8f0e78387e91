package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// at is the memory at base + disp.
func at(base reg.Register, disp int) Mem { return Mem{Base: base, Disp: disp} }

// by is the memory at base + index + disp.
func by(base, index reg.Register, disp int) Mem {
	return Mem{Base: base, Index: index, Scale: 1, Disp: disp}
}

// rowsOf addresses four rows that lie a step apart.
type rowsOf struct{ base, step, step3 reg.Register }

// row returns the memory of row r, disp bytes on.
func (p rowsOf) row(r, disp int) Mem {
	switch r {
	case 0:
		return at(p.base, disp)
	case 1:
		return by(p.base, p.step, disp)
	case 2:
		return Mem{Base: p.base, Index: p.step, Scale: 2, Disp: disp}
	}
	return by(p.base, p.step3, disp)
}

// times3 returns three times a step.
func times3(step reg.Register) reg.GPVirtual {
	r := GP64()
	LEAQ(Mem{Base: step, Index: step, Scale: 2}, r)
	return r
}

func ymms(n int) []reg.VecVirtual {
	v := make([]reg.VecVirtual, n)
	for i := range v {
		v[i] = YMM()
	}
	return v
}

func zmms(n int) []reg.VecVirtual {
	v := make([]reg.VecVirtual, n)
	for i := range v {
		v[i] = ZMM()
	}
	return v
}

// sum4 returns the sums of four vectors of eight as one of four. Alone, a vector
// is summed in the same order: pairs, pairs of pairs, halves.
func sum4(v []reg.VecVirtual) reg.VecVirtual {
	a, b := YMM(), YMM()
	VHADDPS(v[1%len(v)], v[0], a)
	VHADDPS(v[3%len(v)], v[2%len(v)], b)
	VHADDPS(b, a, a)
	x := XMM()
	VEXTRACTF128(Imm(1), a, x)
	VADDPS(a.AsX(), x, x)
	return x
}

// sumTo1 returns the sum of one vector of eight, in the order of sum4.
func sumTo1(v reg.VecVirtual) reg.VecVirtual { return sum4([]reg.VecVirtual{v}) }

// dwords broadcasts a constant of 32 bits.
func dwords(name string, value uint32) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	DATA(0, U32(value))
	return m
}

// broadcastInt sets a fresh YMM to a constant of 32 bits.
func broadcastInt(name string, value uint32) reg.VecVirtual {
	y := YMM()
	VPBROADCASTD(dwords(name, value), y)
	return y
}
