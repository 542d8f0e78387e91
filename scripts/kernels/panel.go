package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A panel is 32 rows of a matrix with their codes widened to words, for the
// products of a prefill. Each group of columns takes
//
//	[8, 4, 32, 2]  j, i, row, h: the code of column 8j + 4h + i
//	[2, 32]        scales, then biases, float32
//
// The unpack kernels write eight rows of it.
const (
	panelRows  = 32
	panelCodes = 32 * panelRows * 4
	panelGroup = panelCodes + 2*panelRows*4
)

// eightRows are the addresses of eight rows of codes, from a table of them.
func eightRows() []reg.Register {
	table := Load(Param("rows"), GP64())
	r := make([]reg.Register, 8)
	for i := range r {
		r[i] = GP64()
		MOVQ(at(table, 8*i), r[i])
	}
	return r
}

func unpack4(nibble Mem) {
	TEXT("unpack4AVX2", NOSPLIT, "func(panel *byte, rows *[8]*byte, groups int)")
	Pragma("noescape")
	Doc("unpack4AVX2 writes eight rows of 4-bit codes to a panel.")
	panel, rows := Load(Param("panel"), GP64()), eightRows()
	left, off, mask := Load(Param("groups"), GP64()), GP64(), YMM()
	XORQ(off, off)
	VPBROADCASTD(nibble, mask)
	Label("group")
	v := ymms(8)
	for i := range v {
		VMOVUPS(by(rows[i], off, 0), v[i])
	}
	for j, words := range transpose8(v) {
		for i := range 4 {
			p := YMM()
			if i == 0 {
				VPAND(mask, words, p)
			} else {
				VPSRLD(Imm(uint64(4*i)), words, p)
				VPAND(mask, p, p)
			}
			VMOVDQU(p, at(panel, (4*j+i)*4*panelRows))
		}
	}
	ADDQ(U32(panelGroup), panel)
	ADDQ(Imm(32), off)
	DECQ(left)
	JNZ(LabelRef("group"))
	ret()
}

// unpack8 transposes half a group at a time: eight dwords are the codes of four
// j.
func unpack8(octet Mem) {
	TEXT("unpack8AVX2", NOSPLIT, "func(panel *byte, rows *[8]*byte, groups int)")
	Pragma("noescape")
	Doc("unpack8AVX2 writes eight rows of 8-bit codes to a panel.")
	panel, rows := Load(Param("panel"), GP64()), eightRows()
	left, off := Load(Param("groups"), GP64()), GP64()
	XORQ(off, off)
	Label("group")
	for half := range 2 {
		v := ymms(8)
		for i := range v {
			VMOVUPS(by(rows[i], off, 32*half), v[i])
		}
		columns := transpose8(v)
		mask := YMM()
		VPBROADCASTD(octet, mask)
		for j := range 4 {
			for i, p := range pairBytes(columns[2*j], columns[2*j+1], mask) {
				VMOVDQU(p, at(panel, (4*(4*half+j)+i)*4*panelRows))
			}
		}
	}
	ADDQ(U32(panelGroup), panel)
	ADDQ(Imm(64), off)
	DECQ(left)
	JNZ(LabelRef("group"))
	ret()
}

func unpackParams() {
	TEXT("unpackParamsAVX2", NOSPLIT, "func(panel *byte, rows *[8]*byte, groups int)")
	Pragma("noescape")
	Doc("unpackParamsAVX2 widens the bfloat16 scales, or biases, of eight rows and groups groups, a multiple of 8, to where panel points in the first group.")
	panel, rows := Load(Param("panel"), GP64()), eightRows()
	left, off := Load(Param("groups"), GP64()), GP64()
	XORQ(off, off)
	Label("groups")
	v := ymms(8)
	for i := range v {
		VPMOVZXWD(by(rows[i], off, 0), v[i])
		VPSLLD(Imm(16), v[i], v[i])
	}
	for g, column := range transpose8(v) {
		VMOVUPS(column, at(panel, g*panelGroup))
	}
	ADDQ(U32(8*panelGroup), panel)
	ADDQ(Imm(16), off)
	SUBQ(Imm(8), left)
	JNZ(LabelRef("groups"))
	ret()
}

// tileArgs are the arguments of every tile: x holds the rows of activations,
// y the outputs of each; scale and sum are where those lie behind x, in bytes.
const tileArgs = "func(y, x *[6]*byte, panel *byte, groups, scale, sum int)"

// tileLoop is what the tiles of both instruction sets have in common.
type tileLoop struct {
	x                []reg.Register
	panel, groups    reg.GPVirtual
	scale, sum, pair reg.GPVirtual
}

func newTileLoop(rows int) *tileLoop {
	table := Load(Param("x"), GP64())
	l := &tileLoop{pair: GP64()}
	for r := range rows {
		p := GP64()
		MOVQ(at(table, 8*r), p)
		l.x = append(l.x, p)
	}
	l.panel = Load(Param("panel"), GP64()).(reg.GPVirtual)
	l.groups = Load(Param("groups"), GP64()).(reg.GPVirtual)
	l.scale = Load(Param("scale"), GP64()).(reg.GPVirtual)
	l.sum = Load(Param("sum"), GP64()).(reg.GPVirtual)
	XORQ(l.pair, l.pair)
	return l
}

// pairs emits body for each pair i of a j, and loops over the j of a group.
func (l *tileLoop) pairs(label string, body func(i int)) {
	Label(label)
	for i := range 4 {
		body(i)
	}
	ADDQ(U32(4*4*panelRows), l.panel)
	ADDQ(Imm(4), l.pair)
	TESTQ(U32(31), l.pair)
	JNZ(LabelRef(label))
}

// next goes on to the next group, or falls out.
func (l *tileLoop) next(label string) {
	ADDQ(U32(panelGroup-panelCodes), l.panel)
	ADDQ(Imm(4), l.scale)
	ADDQ(Imm(4), l.sum)
	TESTQ(U32(32), l.pair)
	JNZ(LabelRef(label + "Even"))
	ADDQ(U32(blockBytes-64), l.pair)
	Label(label + "Even")
	DECQ(l.groups)
	JNZ(LabelRef(label))
}

// tileAVX2 makes 16 columns of a panel at a time; the sums lie in y, for
// registers hold only the integers of one group.
func tileAVX2(rows int) {
	name := "tile" + string(rune('0'+rows)) + "AVX2"
	TEXT(name, NOSPLIT, tileArgs)
	Pragma("noescape")
	Doc(name + " multiplies a panel with rows of activations.")
	l := newTileLoop(rows)
	table, y := Load(Param("y"), GP64()), GP64()
	clearOutputs(table, y, rows)
	Label("group")
	for half := range 2 {
		dots := make([][]reg.VecVirtual, rows)
		for r := range dots {
			dots[r] = zeros(2)
		}
		l.pairs("pairs"+string(rune('0'+half)), func(i int) {
			w := ymms(2)
			for h := range w {
				VMOVDQU(at(l.panel, i*4*panelRows+64*half+32*h), w[h])
			}
			for r := range rows {
				x := YMM()
				VPBROADCASTD(by(l.x[r], l.pair, 64*i), x)
				for h := range w {
					p := YMM()
					VPMADDWD(w[h], x, p)
					VPADDD(p, dots[r][h], dots[r][h])
				}
			}
		})
		if half == 0 {
			SUBQ(Imm(32), l.pair)
			SUBQ(U32(panelCodes), l.panel)
		}
		for r := range rows {
			MOVQ(at(table, 8*r), y)
			d, sum := YMM(), YMM()
			VBROADCASTSS(by(l.x[r], l.scale, 0), d)
			VBROADCASTSS(by(l.x[r], l.sum, 0), sum)
			params := half * 64
			if half == 0 {
				params += panelCodes
			}
			for h, dot := range dots[r] {
				VCVTDQ2PS(dot, dot)
				VMULPS(d, dot, dot)
				acc := YMM()
				VMOVUPS(at(y, 64*half+32*h), acc)
				VFMADD231PS(at(l.panel, params+32*h), dot, acc)
				VFMADD231PS(at(l.panel, params+4*panelRows+32*h), sum, acc)
				VMOVUPS(acc, at(y, 64*half+32*h))
			}
		}
	}
	l.next("group")
	ret()
}

func clearOutputs(table, y reg.Register, rows int) {
	zero := YMM()
	VXORPS(zero, zero, zero)
	for r := range rows {
		MOVQ(at(table, 8*r), y)
		for h := range 4 {
			VMOVUPS(zero, at(y, 32*h))
		}
	}
}
