package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// deltaStepKernel reads the state twice, the second time from the nearest cache:
// with S' = decay S + d kᵀ, both S k and S' q = decay S q + d (k·q) come from
// one look at S.
func deltaStepKernel() {
	TEXT("deltaStepAVX2", NOSPLIT, "func(o, s, q, k, v *float32, keyDim, valueDim int, decay, beta, kq float32)")
	Pragma("noescape")
	Doc("deltaStepAVX2 is the delta rule of one head; kq is k·q, keyDim a multiple of 8 and valueDim of 4.")
	o, s := Load(Param("o"), GP64()), Load(Param("s"), GP64())
	q, k := Load(Param("q"), GP64()), Load(Param("k"), GP64())
	v, width := Load(Param("v"), GP64()), Load(Param("keyDim"), GP64())
	left := Load(Param("valueDim"), GP64())
	SHLQ(Imm(2), width)
	rows := rowsOf{s, width, times3(width)}
	decay, beta, kq := broadcastParam("decay"), broadcastParam("beta"), broadcastParam("kq")

	Label("rows")
	sk, sq := ymms(4), ymms(4)
	for r := range 4 {
		VXORPS(sk[r], sk[r], sk[r])
		VXORPS(sq[r], sq[r], sq[r])
	}
	off := GP64()
	XORQ(off, off)
	base := GP64()
	MOVQ(s, base)
	moving := rowsOf{base, width, rows.step3}
	Label("look")
	kv, qv := YMM(), YMM()
	VMOVUPS(by(k, off, 0), kv)
	VMOVUPS(by(q, off, 0), qv)
	for r := range 4 {
		row := YMM()
		VMOVUPS(moving.row(r, 0), row)
		VFMADD231PS(row, kv, sk[r])
		VFMADD231PS(row, qv, sq[r])
	}
	ADDQ(Imm(32), base)
	ADDQ(Imm(32), off)
	CMPQ(off, width)
	JNE(LabelRef("look"))

	d, out := sum4(sk), sum4(sq)
	remembered := XMM()
	VMULPS(decay.AsX(), d, d)
	VMOVUPS(at(v, 0), remembered)
	VSUBPS(d, remembered, d)
	VMULPS(beta.AsX(), d, d)
	VMULPS(decay.AsX(), out, out)
	VFMADD231PS(kq.AsX(), d, out)
	VMOVUPS(out, at(o, 0))
	each := ymms(4)
	for r := range 4 {
		x := XMM()
		VPERMILPS(Imm(uint64(r*0x55)), d, x)
		VBROADCASTSS(x, each[r])
	}
	XORQ(off, off)
	MOVQ(s, base)
	Label("change")
	kv = YMM()
	VMOVUPS(by(k, off, 0), kv)
	for r := range 4 {
		row := YMM()
		VMULPS(moving.row(r, 0), decay, row)
		VFMADD231PS(kv, each[r], row)
		VMOVUPS(row, moving.row(r, 0))
	}
	ADDQ(Imm(32), base)
	ADDQ(Imm(32), off)
	CMPQ(off, width)
	JNE(LabelRef("change"))

	LEAQ(Mem{Base: s, Index: width, Scale: 4}, s)
	ADDQ(Imm(16), o)
	ADDQ(Imm(16), v)
	SUBQ(Imm(4), left)
	JNZ(LabelRef("rows"))
	ret()
}
