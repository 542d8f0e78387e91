package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The matmul family needs AVX2 and FMA: float32 matrices, for attention and the
// chunked delta rule.
func matMulFamily() {
	matMulKernel(4, 2)
	matMulKernel(1, 8)
	transposeKernel()
}

// matMulKernel makes rows × (8 × wide) values at a time in registers, then what
// remains of the columns eight by eight. Every value is a chain of fused
// products over k ascending, in whatever company.
func matMulKernel(rows, wide int) {
	name := map[int]string{1: "matMul1AVX2", 4: "matMul4AVX2"}[rows]
	TEXT(name, NOSPLIT, "func(c, a, b *float32, n, k, cStep, aStep, bStep int, add bool)")
	Pragma("noescape")
	if rows == 1 {
		Doc(name + " sets one row of c [n] to a [k] × b [k, n], or adds it; n is a multiple of 8, steps are in bytes.")
	} else {
		Doc(name + " is matMul1AVX2 for four rows of c and a.")
	}
	c, n := Load(Param("c"), GP64()), Load(Param("n"), GP64())
	b := Load(Param("b"), GP64())
	k := Load(Param("k"), GP64())
	cStep, aStep := Load(Param("cStep"), GP64()), Load(Param("aStep"), GP64())
	bStep := Load(Param("bStep"), GP64())
	cRows := rowsOf{c, cStep, cStep}
	aRows := rowsOf{GP64(), aStep, aStep}
	if rows == 4 {
		cRows.step3, aRows.step3 = times3(cStep), times3(aStep)
	}
	for _, width := range []int{wide, 1} {
		label := map[bool]string{true: "wide", false: "narrow"}[width == wide]
		Label(label)
		CMPQ(n, U32(8*width))
		if width == wide {
			JL(LabelRef("narrow"))
		} else {
			JL(LabelRef("done"))
		}
		matMulTile(rows, width, label, cRows, aRows, b, bStep, k)
		ADDQ(U32(32*width), c)
		ADDQ(U32(32*width), b)
		SUBQ(U32(8*width), n)
		JMP(LabelRef(label))
	}
	Label("done")
	ret()
}

func matMulTile(rows, width int, label string, c, a rowsOf, b, bStep, k reg.Register) {
	acc := make([][]reg.VecVirtual, rows)
	for r := range acc {
		acc[r] = ymms(width)
		for _, v := range acc[r] {
			VXORPS(v, v, v)
		}
	}
	add := GP8()
	Load(Param("add"), add)
	TESTB(add, add)
	JZ(LabelRef(label + "Fresh"))
	for r := range acc {
		for i, v := range acc[r] {
			VMOVUPS(c.row(r, 32*i), v)
		}
	}
	Label(label + "Fresh")
	Load(Param("a"), a.base)
	bp, left := GP64(), GP64()
	MOVQ(b, bp)
	MOVQ(k, left)
	Label(label + "Next")
	bv := make([]reg.VecVirtual, width)
	if rows > 1 {
		for i := range bv {
			bv[i] = YMM()
			VMOVUPS(at(bp, 32*i), bv[i])
		}
	}
	for r := range acc {
		x := YMM()
		VBROADCASTSS(a.row(r, 0), x)
		for i, v := range acc[r] {
			if rows > 1 {
				VFMADD231PS(bv[i], x, v)
			} else {
				VFMADD231PS(at(bp, 32*i), x, v)
			}
		}
	}
	ADDQ(bStep, bp)
	ADDQ(Imm(4), a.base)
	DECQ(left)
	JNZ(LabelRef(label + "Next"))
	for r := range acc {
		for i, v := range acc[r] {
			VMOVUPS(v, c.row(r, 32*i))
		}
	}
}

// transposeKernel moves blocks of eight by eight.
func transposeKernel() {
	TEXT("transpose8AVX2", NOSPLIT, "func(y, x *float32, n, yStep, xStep int)")
	Pragma("noescape")
	Doc("transpose8AVX2 sets n rows of eight values y, n a multiple of 8, to the columns of eight rows x; steps are in bytes.")
	y, x, n := Load(Param("y"), GP64()), Load(Param("x"), GP64()), Load(Param("n"), GP64())
	yStep, xStep := Load(Param("yStep"), GP64()), Load(Param("xStep"), GP64())
	xs := rowsOf{x, xStep, times3(xStep)}
	ys := rowsOf{y, yStep, times3(yStep)}
	x4, y4 := GP64(), GP64()
	LEAQ(Mem{Base: x, Index: xStep, Scale: 4}, x4)
	high := rowsOf{x4, xStep, xs.step3}
	Label("block")
	LEAQ(Mem{Base: y, Index: yStep, Scale: 4}, y4)
	rows := ymms(8)
	for r := range 4 {
		VMOVUPS(xs.row(r, 0), rows[r])
		VMOVUPS(high.row(r, 0), rows[r+4])
	}
	columns := transpose8(rows)
	for r := range 4 {
		VMOVUPS(columns[r], ys.row(r, 0))
		VMOVUPS(columns[r+4], rowsOf{y4, yStep, ys.step3}.row(r, 0))
	}
	ADDQ(Imm(32), x)
	ADDQ(Imm(32), x4)
	LEAQ(Mem{Base: y, Index: yStep, Scale: 8}, y)
	SUBQ(Imm(8), n)
	JNZ(LabelRef("block"))
	ret()
}

// transpose8 returns the columns of eight vectors of eight.
func transpose8(v []reg.VecVirtual) []reg.VecVirtual {
	pairs := ymms(8)
	for i := 0; i < 8; i += 2 {
		VUNPCKLPS(v[i+1], v[i], pairs[i])
		VUNPCKHPS(v[i+1], v[i], pairs[i+1])
	}
	fours := ymms(8) // fours[i+4×half]: element i of each half, four rows
	for half := range 2 {
		p := pairs[4*half:]
		for i := range 2 {
			VSHUFPS(Imm(0x44), p[2+i], p[i], fours[4*half+2*i])
			VSHUFPS(Imm(0xee), p[2+i], p[i], fours[4*half+2*i+1])
		}
	}
	out := ymms(8)
	for i := range 4 {
		VPERM2F128(Imm(0x20), fours[4+i], fours[i], out[i])
		VPERM2F128(Imm(0x31), fours[4+i], fours[i], out[4+i])
	}
	return out
}
