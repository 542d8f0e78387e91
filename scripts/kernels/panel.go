package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A panel is 32 rows of a matrix for the products of a prefill. Its codes are
// widened to words a few groups of columns at a time, so that they stay in the
// nearest cache while all rows of activations pass by. A group of them is
//
//	[8, 4, 32, 2]  j, i, row, h: the code of column 8j + 4h + i
//
// Scales and biases are widened for all groups at once, [groups, 2, 32]float32:
// a group's scales, then its biases. The unpack kernels write eight rows.
const (
	panelRows   = 32
	panelCodes  = 32 * panelRows * 4 // bytes of a group
	panelParams = 2 * panelRows * 4
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

const unpackArgs = "func(codes *byte, rows *[8]*byte, offset, groups int)"

func unpack4(nibble Mem) {
	TEXT("unpack4AVX2", NOSPLIT, unpackArgs)
	Pragma("noescape")
	Doc("unpack4AVX2 widens 4-bit codes of eight rows, from offset bytes into each on.")
	panel, rows := Load(Param("codes"), GP64()), eightRows()
	left, off, mask := Load(Param("groups"), GP64()), Load(Param("offset"), GP64()), YMM()
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
	ADDQ(U32(panelCodes), panel)
	ADDQ(Imm(32), off)
	DECQ(left)
	JNZ(LabelRef("group"))
	ret()
}

// unpack8 transposes half a group at a time: eight dwords are the codes of four
// j.
func unpack8(octet Mem) {
	TEXT("unpack8AVX2", NOSPLIT, unpackArgs)
	Pragma("noescape")
	Doc("unpack8AVX2 is unpack4AVX2 for 8-bit codes.")
	panel, rows := Load(Param("codes"), GP64()), eightRows()
	left, off := Load(Param("groups"), GP64()), Load(Param("offset"), GP64())
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
	ADDQ(U32(panelCodes), panel)
	ADDQ(Imm(64), off)
	DECQ(left)
	JNZ(LabelRef("group"))
	ret()
}

// unpackParams writes a group's scales and biases step bytes behind the last's.
func unpackParams(name string, step int) {
	TEXT(name, NOSPLIT, "func(params *byte, rows *[8]*byte, groups int)")
	Pragma("noescape")
	Doc(name + " widens the bfloat16 scales, or biases, of eight rows and groups groups, a multiple of 8.")
	params, rows := Load(Param("params"), GP64()), eightRows()
	left, off := Load(Param("groups"), GP64()), GP64()
	XORQ(off, off)
	Label("groups")
	v := ymms(8)
	for i := range v {
		VPMOVZXWD(by(rows[i], off, 0), v[i])
		VPSLLD(Imm(16), v[i], v[i])
	}
	for g, column := range transpose8(v) {
		VMOVUPS(column, at(params, g*step))
	}
	ADDQ(U32(uint32(8*step)), params)
	ADDQ(Imm(16), off)
	SUBQ(Imm(8), left)
	JNZ(LabelRef("groups"))
	ret()
}

func fetchKernel() {
	TEXT("fetchAVX2", NOSPLIT, "func(x *byte, n int)")
	Pragma("noescape")
	Doc("fetchAVX2 asks for n bytes, in whole cache lines, to be in the second cache soon.")
	x, n := Load(Param("x"), GP64()), Load(Param("n"), GP64())
	Label("line")
	PREFETCHT1(at(x, 0))
	ADDQ(Imm(64), x)
	SUBQ(Imm(64), n)
	JG(LabelRef("line"))
	RET()
}

// tileArgs are the arguments of every tile: x holds the rows of activations, of
// which it takes groups groups, the first at pair, scale and sum bytes behind
// each. Sums, a row behind the other, are added to.
const tileArgs = "func(sums *float32, x *[6]*byte, codes, params *byte, groups, pair, scale, sum int)"

// tileLoop is what the tiles of both instruction sets have in common.
type tileLoop struct {
	x                     []reg.Register
	codes, params, groups reg.Register
	pair, scale, sum      reg.Register
}

func newTileLoop(rows int) *tileLoop {
	table := Load(Param("x"), GP64())
	l := &tileLoop{}
	for r := range rows {
		p := GP64()
		MOVQ(at(table, 8*r), p)
		l.x = append(l.x, p)
	}
	l.codes, l.params = Load(Param("codes"), GP64()), Load(Param("params"), GP64())
	l.groups, l.pair = Load(Param("groups"), GP64()), Load(Param("pair"), GP64())
	l.scale, l.sum = Load(Param("scale"), GP64()), Load(Param("sum"), GP64())
	return l
}

// pairs emits body for each pair i of a j, and loops over the j of a group.
func (l *tileLoop) pairs(label string, body func(i int)) {
	Label(label)
	for i := range 4 {
		body(i)
	}
	ADDQ(U32(4*4*panelRows), l.codes)
	ADDQ(Imm(4), l.pair)
	TESTQ(U32(31), l.pair)
	JNZ(LabelRef(label))
}

// next goes on to the next group, or falls out.
func (l *tileLoop) next(label string) {
	ADDQ(U32(panelParams), l.params)
	ADDQ(Imm(4), l.scale)
	ADDQ(Imm(4), l.sum)
	TESTQ(U32(32), l.pair)
	JNZ(LabelRef(label + "Even"))
	ADDQ(U32(blockBytes-64), l.pair)
	Label(label + "Even")
	DECQ(l.groups)
	JNZ(LabelRef(label))
}

// tileAVX2 makes 16 columns of a panel at a time; the sums stay in memory, for
// registers hold only the integers of one group.
func tileAVX2(rows int) {
	name := "tile" + string(rune('0'+rows)) + "AVX2"
	TEXT(name, NOSPLIT, tileArgs)
	Pragma("noescape")
	Doc(name + " multiplies groups of a panel with rows of activations.")
	l := newTileLoop(rows)
	sums := Load(Param("sums"), GP64())
	Label("group")
	for half := range 2 {
		dots := make([][]reg.VecVirtual, rows)
		for r := range dots {
			dots[r] = zeros(2)
		}
		l.pairs("pairs"+string(rune('0'+half)), func(i int) {
			w := ymms(2)
			for h := range w {
				VMOVDQU(at(l.codes, i*4*panelRows+64*half+32*h), w[h])
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
			SUBQ(U32(panelCodes), l.codes)
		}
		for r := range rows {
			d, sum := YMM(), YMM()
			VBROADCASTSS(by(l.x[r], l.scale, 0), d)
			VBROADCASTSS(by(l.x[r], l.sum, 0), sum)
			for h, dot := range dots[r] {
				column := 64*half + 32*h
				VCVTDQ2PS(dot, dot)
				VMULPS(d, dot, dot)
				acc := YMM()
				VMOVUPS(at(sums, 4*panelRows*r+column), acc)
				VFMADD231PS(at(l.params, column), dot, acc)
				VFMADD231PS(at(l.params, 4*panelRows+column), sum, acc)
				VMOVUPS(acc, at(sums, 4*panelRows*r+column))
			}
		}
	}
	l.next("group")
	ret()
}
