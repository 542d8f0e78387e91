package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A row of activations for the products: 16-bit integers under one power of two
// a quantisation group, so that a bfloat16 within 2^7 of its group's largest is
// exact. Integer products want pairs in a dword; nibbles i and i+4 of a word of
// codes come out of one mask and one shift. So, for each two groups:
//
//	[4, 16, 2]  i, j, h: the value of column 8j + 4h + i
//
// The j of the first group are 0 to 7. A last group without a second leaves the
// other half zero.
const blockBytes = 256

// nextGroup moves an offset from a group's values to the next group's.
func nextGroup(offset reg.Register, label string) {
	ADDQ(Imm(32), offset)
	TESTQ(U32(32), offset)
	JNZ(LabelRef(label))
	ADDQ(U32(blockBytes-64), offset)
	Label(label)
}

func quantiseKernel() {
	TEXT("quantiseAVX2", NOSPLIT, "func(t *int16, scale, sum *float32, x *float32, groups int)")
	Pragma("noescape")
	Doc("quantiseAVX2 makes a row of activations of float32 values: t in pairs, for each group its scale and scale × Σ t. What isn't finite makes a group's scale a NaN.")
	t, scale, sum := Load(Param("t"), GP64()), Load(Param("scale"), GP64()), Load(Param("sum"), GP64())
	x, groups := Load(Param("x"), GP64()), Load(Param("groups"), GP64())
	off := GP64()
	XORQ(off, off)
	Label("group")
	exponent, v := integersOf(x)
	storeScale(exponent, v, at(scale, 0), at(sum, 0))
	storePairs(v, t, off)
	ADDQ(U32(256), x)
	ADDQ(Imm(4), scale)
	ADDQ(Imm(4), sum)
	nextGroup(off, "even")
	DECQ(groups)
	JNZ(LabelRef("group"))
	ret()
}

// integersOf returns the exponent of a group of values in all lanes, and the
// group's integers, eight columns a vector.
func integersOf(x reg.Register) (exponent reg.VecVirtual, v []reg.VecVirtual) {
	least, invert := dwords("leastExponent", 15), dwords("invertExponent", 268)
	top := dwords("largestInt16", 32767)
	v = ymms(8)
	magnitude := YMM()
	mask := YMM()
	VPCMPEQD(mask, mask, mask)
	VPSRLD(Imm(1), mask, mask)
	for i := range v {
		VMOVUPS(at(x, 32*i), v[i])
		a := YMM()
		if i == 0 {
			VPAND(v[i], mask, magnitude)
			continue
		}
		VPAND(v[i], mask, a)
		VPMAXUD(a, magnitude, magnitude)
	}
	exponent = exponentOf(magnitude, least)
	inverse := YMM()
	VPBROADCASTD(invert, inverse)
	VPSUBD(exponent, inverse, inverse)
	VPSLLD(Imm(23), inverse, inverse)
	largest := YMM()
	VPBROADCASTD(top, largest)
	for i := range v {
		VMULPS(inverse, v[i], v[i])
		VCVTPS2DQ(v[i], v[i])
		VPMINSD(largest, v[i], v[i])
	}
	return exponent, v
}

// exponentOf returns the biased exponent of the largest magnitude, at least the
// one whose scale is no denormal, in all lanes.
func exponentOf(magnitude reg.VecVirtual, least Mem) reg.VecVirtual {
	t := YMM()
	VPERM2I128(Imm(1), magnitude, magnitude, t)
	VPMAXUD(t, magnitude, magnitude)
	VPSHUFD(Imm(0x4e), magnitude, t)
	VPMAXUD(t, magnitude, magnitude)
	VPSHUFD(Imm(0xb1), magnitude, t)
	VPMAXUD(t, magnitude, magnitude)
	VPSRLD(Imm(23), magnitude, magnitude)
	VPBROADCASTD(least, t)
	VPMAXUD(t, magnitude, magnitude)
	return magnitude
}

// storeScale stores a group's scale and the sum of its integers times that.
func storeScale(exponent reg.VecVirtual, v []reg.VecVirtual, scale, sum Mem) {
	fourteen, nan := dwords("fourteen", 14), dwords("nanExponent", 255)
	s, isNaN := XMM(), XMM()
	VPBROADCASTD(nan, isNaN)
	VPCMPEQD(exponent.AsX(), isNaN, isNaN)
	VPBROADCASTD(fourteen, s)
	VPSUBD(s, exponent.AsX(), s)
	VPSLLD(Imm(23), s, s)
	VPOR(isNaN, s, s)
	VMOVSS(s, scale)
	a := YMM()
	VPADDD(v[0], v[1], a)
	for _, y := range v[2:] {
		VPADDD(y, a, a)
	}
	x := fold(a, func(ops ...Op) { VPADDD(ops[0], ops[1], ops[2]) })
	VCVTDQ2PS(x, x)
	VMULSS(s, x, x)
	VMOVSS(x, sum)
}

// storePairs stores a group's integers, v[j] being columns 8j to 8j+7.
func storePairs(v []reg.VecVirtual, t, off reg.Register) {
	q := ymms(4) // q[m]: the pairs of j = m, then those of j = m+4
	for m := range q {
		high := YMM()
		VPERM2I128(Imm(0x20), v[m+4], v[m], q[m])
		VPERM2I128(Imm(0x31), v[m+4], v[m], high)
		VPSLLD(Imm(16), high, high)
		VPBLENDW(Imm(0xaa), high, q[m], q[m])
	}
	a := ymms(4)
	VPUNPCKLDQ(q[1], q[0], a[0])
	VPUNPCKHDQ(q[1], q[0], a[1])
	VPUNPCKLDQ(q[3], q[2], a[2])
	VPUNPCKHDQ(q[3], q[2], a[3])
	for i := range 4 {
		out := YMM()
		if i%2 == 0 {
			VPUNPCKLQDQ(a[i/2+2], a[i/2], out)
		} else {
			VPUNPCKHQDQ(a[i/2+2], a[i/2], out)
		}
		VMOVDQU(out, by(t, off, 64*i))
	}
}
