package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// The kernels of Argmax: the largest of many values, and where a value is.
const (
	equal     = 0 // predicates of comparisons
	unordered = 3
)

func largestKernel() {
	TEXT("largestAVX2", NOSPLIT, "func(x *float32, n int) float32")
	Pragma("noescape")
	Doc("largestAVX2 returns the largest of n values, a multiple of 32 and not 0, or a NaN where there is one.")
	x, n := Load(Param("x"), GP64()), Load(Param("n"), GP64())
	largest, nan := ymms(4), zeros(1)[0]
	for i := range largest {
		VMOVUPS(at(x, 0), largest[i])
	}
	Label("values")
	for i := range largest {
		v, isNaN := YMM(), YMM()
		VMOVUPS(at(x, 32*i), v)
		VCMPPS(Imm(unordered), v, v, isNaN)
		VORPS(isNaN, nan, nan)
		VMAXPS(v, largest[i], largest[i])
	}
	ADDQ(U32(128), x)
	SUBQ(Imm(32), n)
	JNZ(LabelRef("values"))
	for i := range 3 {
		VMAXPS(largest[i+1], largest[0], largest[0])
	}
	most := fold(largest[0], func(ops ...Op) { VMAXPS(ops[0], ops[1], ops[2]) })
	isNaN := fold(nan, func(ops ...Op) { VORPS(ops[0], ops[1], ops[2]) })
	VORPS(isNaN, most, most)
	Store(most, ReturnIndex(0))
	ret()
}

func indexKernel() {
	TEXT("indexAVX2", NOSPLIT, "func(x *float32, n int, v float32) int")
	Pragma("noescape")
	Doc("indexAVX2 returns where the first of n values, a multiple of 32, is that equals v, or n.")
	x, n := Load(Param("x"), GP64()), Load(Param("n"), GP64())
	v := YMM()
	VBROADCASTSS(NewParamAddr("v", 16), v)
	i := GP64()
	XORQ(i, i)
	Label("values")
	CMPQ(i, n)
	JGE(LabelRef("none"))
	is, mask := YMM(), GP32()
	VCMPPS(Imm(equal), Mem{Base: x, Index: i, Scale: 4}, v, is)
	VMOVMSKPS(is, mask)
	ADDQ(Imm(8), i)
	TESTL(mask, mask)
	JZ(LabelRef("values"))
	BSFL(mask, mask)
	LEAQ(Mem{Base: i, Index: mask.As64(), Scale: 1, Disp: -8}, i)
	Label("none")
	Store(i, ReturnIndex(0))
	ret()
}
