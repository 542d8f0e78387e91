package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The product family needs AVX2 and FMA.
func productFamily() {
	quantiseKernel()
	nibble := dwords("nibblePairs", 0x000f000f)
	octet := dwords("bytePairs", 0x00ff00ff)
	matVec4(nibble)
	matVec8(octet)
	unpack4(nibble)
	unpack8(octet)
	unpackParams("unpackParamsAVX2", panelParams)
	fetchKernel()
	for rows := 1; rows <= 4; rows++ {
		tileAVX2(rows)
	}
}

// matVecArgs are the arguments of every matrix-vector product.
const matVecArgs = "func(y *float32, codes, scales, biases *byte, t *int16, scale, sum *float32, groups, rows int)"

// matVecLoop walks the rows of a matrix, four at a time and then one by one.
type matVecLoop struct {
	y, codes, scales, biases, rows Mem // of the rows that are left, on the stack
	codeBytes                      int // of a group

	w, s, b rowsOf // the codes, scales and biases of the rows under way
	ahead   rowsOf // codes that come later
	t, d    reg.GPVirtual
	sum     reg.GPVirtual
	left    reg.GPVirtual // groups
}

func newMatVecLoop(codeBytes int) *matVecLoop {
	m := &matVecLoop{
		y: AllocLocal(8), codes: AllocLocal(8), scales: AllocLocal(8), biases: AllocLocal(8), rows: AllocLocal(8),
		codeBytes: codeBytes,
		t:         GP64(), d: GP64(), sum: GP64(), left: GP64(),
	}
	for _, p := range []struct {
		name  string
		local Mem
	}{{"y", m.y}, {"codes", m.codes}, {"scales", m.scales}, {"biases", m.biases}, {"rows", m.rows}} {
		MOVQ(Load(Param(p.name), GP64()), p.local)
	}
	step := Load(Param("groups"), GP64())
	SHLQ(Imm(1), step)
	m.s = rowsOf{GP64(), step, times3(step)}
	m.b = rowsOf{GP64(), step, m.s.step3}
	wide := GP64()
	MOVQ(step, wide)
	SHLQ(Imm(map[int]uint64{32: 4, 64: 5}[codeBytes]), wide)
	m.w = rowsOf{GP64(), wide, times3(wide)}
	m.ahead = rowsOf{GP64(), wide, m.w.step3}
	return m
}

// each emits body, which returns the vectors to sum up, for four rows and one.
func (m *matVecLoop) each(body func(label string, rows int) []reg.VecVirtual) {
	for _, rows := range []int{4, 1} {
		label := map[int]string{4: "four", 1: "one"}[rows]
		end := map[int]string{4: "one", 1: "done"}[rows]
		Label(label)
		CMPQ(m.rows, Imm(uint64(rows)))
		JL(LabelRef(end))
		if rows == 4 {
			CMPQ(m.s.step, Imm(2*longGroups))
			JG(LabelRef(end))
		}
		MOVQ(m.codes, m.w.base)
		LEAQ(at(m.w.base, fetchAhead), m.ahead.base)
		MOVQ(m.scales, m.s.base)
		MOVQ(m.biases, m.b.base)
		Load(Param("t"), m.t)
		Load(Param("scale"), m.d)
		Load(Param("sum"), m.sum)
		Load(Param("groups"), m.left)
		m.finish(rows, body(label, rows))
		JMP(LabelRef(label))
	}
	Label("done")
	ret()
}

// fetchAhead is how many bytes ahead codes are fetched: what memory gives in the
// time that one access takes. They have a register of their own: in the form
// disp(base)(index), a third of the gain is lost.
const fetchAhead = 4096

// longGroups is the most groups of a row that is taken together with three
// others. Longer ones go alone: memory gives more to one walk than to four.
const longGroups = 16

// fetch asks for codes that come later.
func (m *matVecLoop) fetch(rows, disp int) {
	for r := range rows {
		PREFETCHT0(m.ahead.row(r, disp))
	}
}

// fetchParams asks for scales and biases, as far ahead as the codes.
func (m *matVecLoop) fetchParams(rows int) {
	for _, p := range []rowsOf{m.s, m.b} {
		ahead := GP64()
		LEAQ(Mem{Base: p.base, Index: p.step, Scale: 4}, ahead)
		for r := range rows {
			PREFETCHT0(rowsOf{ahead, p.step, p.step3}.row(r, 0))
		}
	}
}

// finish stores the sums of rows vectors and goes on to the next rows.
func (m *matVecLoop) finish(rows int, acc []reg.VecVirtual) {
	sums, y := sum4(acc), GP64()
	MOVQ(m.y, y)
	if rows == 4 {
		VMOVUPS(sums, at(y, 0))
	} else {
		VMOVSS(sums, at(y, 0))
	}
	ADDQ(Imm(uint64(4*rows)), y)
	MOVQ(y, m.y)
	for _, p := range []struct {
		local Mem
		step  reg.Register
	}{{m.codes, m.w.step}, {m.scales, m.s.step}, {m.biases, m.b.step}} {
		r := GP64()
		MOVQ(p.local, r)
		LEAQ(Mem{Base: r, Index: p.step, Scale: uint8(rows)}, r)
		MOVQ(r, p.local)
	}
	SUBQ(Imm(uint64(rows)), m.rows)
}

func zeros(n int) []reg.VecVirtual {
	v := ymms(n)
	for _, y := range v {
		VXORPS(y, y, y)
	}
	return v
}

// widenWords sets a fresh vector to eight bfloat16 values.
func widenWords(m Mem) reg.VecVirtual {
	y := YMM()
	VPMOVZXWD(m, y)
	VPSLLD(Imm(16), y, y)
	return y
}

// broadcastWord sets a fresh vector to one bfloat16 value.
func broadcastWord(m Mem) reg.VecVirtual {
	y := YMM()
	VPBROADCASTW(m, y)
	VPSLLD(Imm(16), y, y)
	return y
}

// matVec4 takes eight groups at a time: their scales are widened together and
// put on the stack, where each is broadcast from.
func matVec4(nibble Mem) {
	TEXT("matVec4AVX2", NOSPLIT, matVecArgs)
	Pragma("noescape")
	Doc("matVec4AVX2 multiplies rows of a matrix of 4-bit codes with one row of activations.")
	m := newMatVecLoop(32)
	scaled := AllocLocal(4 * 32)
	mask := YMM()
	VPBROADCASTD(nibble, mask)
	m.each(func(label string, rows int) []reg.VecVirtual {
		acc := zeros(rows)
		Label(label + "Eight")
		SUBQ(Imm(8), m.left)
		JL(LabelRef(label + "Rest"))
		m.fetchParams(rows)
		d, sum := YMM(), YMM()
		VMOVUPS(at(m.d, 0), d)
		VMOVUPS(at(m.sum, 0), sum)
		for r := range rows {
			s := widenWords(m.s.row(r, 0))
			VMULPS(d, s, s)
			VMOVUPS(s, scaled.Offset(32*r))
			VFMADD231PS(widenWords(m.b.row(r, 0)), sum, acc[r])
		}
		for g := range 8 {
			if g%2 == 0 {
				m.fetch(rows, 32*g)
			}
			for r := range rows {
				dot := dotNibbles(m.w.row(r, 32*g), m.t, g/2*blockBytes+g%2*32, mask)
				s := YMM()
				VBROADCASTSS(scaled.Offset(32*r+4*g), s)
				VFMADD231PS(s, dot, acc[r])
			}
		}
		ADDQ(U32(4*blockBytes), m.t)
		m.advance(8)
		JMP(LabelRef(label + "Eight"))

		Label(label + "Rest")
		ADDQ(Imm(8), m.left)
		off, base := GP64(), m.t
		XORQ(off, off)
		Label(label + "Group")
		DECQ(m.left)
		JL(LabelRef(label + "End"))
		for r := range rows {
			v := YMM()
			VMOVDQU(m.w.row(r, 0), v)
			dot := dotWords(v, mask, func(i int) Mem { return by(base, off, 64*i) })
			m.foldGroup(r, dot, acc[r])
		}
		m.advance(1)
		nextGroup(off, label+"Even")
		JMP(LabelRef(label + "Group"))
		Label(label + "End")
		return acc
	})
}

// advance goes on by groups, but for the activations.
func (m *matVecLoop) advance(groups int) {
	ADDQ(U32(m.codeBytes*groups), m.w.base)
	ADDQ(U32(m.codeBytes*groups), m.ahead.base)
	ADDQ(Imm(uint64(2*groups)), m.s.base)
	ADDQ(Imm(uint64(2*groups)), m.b.base)
	ADDQ(Imm(uint64(4*groups)), m.d)
	ADDQ(Imm(uint64(4*groups)), m.sum)
}

// foldGroup adds one group's scale × dot and bias × Σ x to a row's sums.
func (m *matVecLoop) foldGroup(r int, dot, acc reg.VecVirtual) {
	s, d := broadcastWord(m.s.row(r, 0)), YMM()
	VBROADCASTSS(at(m.d, 0), d)
	VMULPS(d, s, s)
	VFMADD231PS(s, dot, acc)
	sum := XMM()
	VMOVSS(at(m.sum, 0), sum) // the other lanes are zero
	VFMADD231PS(broadcastWord(m.b.row(r, 0)), sum.AsY(), acc)
}

// dotNibbles returns, as float32, the integer products of a group's codes with
// its activations, in eight lanes.
func dotNibbles(codes Mem, t reg.Register, disp int, mask reg.VecVirtual) reg.VecVirtual {
	v := YMM()
	VMOVDQU(codes, v)
	return dotWords(v, mask, func(i int) Mem { return at(t, disp+64*i) })
}

func dotWords(v, mask reg.VecVirtual, pairs func(i int) Mem) reg.VecVirtual {
	dot := YMM()
	for i := range 4 {
		p := YMM()
		if i == 0 {
			VPAND(mask, v, p)
			VPMADDWD(pairs(i), p, dot)
			continue
		}
		VPSRLD(Imm(uint64(4*i)), v, p)
		VPAND(mask, p, p)
		VPMADDWD(pairs(i), p, p)
		VPADDD(p, dot, dot)
	}
	VCVTDQ2PS(dot, dot)
	return dot
}

// bytePairs returns the pairs i, i+4 of 64 codes of 8 bits, for i = 0 to 3, in
// the order of the activations.
func bytePairs(codes func(disp int) Mem, mask reg.VecVirtual) []reg.VecVirtual {
	a, b := YMM(), YMM()
	VMOVUPS(codes(0), a)
	VMOVUPS(codes(32), b)
	even, odd := YMM(), YMM() // codes 8j to 8j+3, and 8j+4 to 8j+7
	VSHUFPS(Imm(0x88), b, a, even)
	VSHUFPS(Imm(0xdd), b, a, odd)
	VPERMQ(Imm(0xd8), even, even)
	VPERMQ(Imm(0xd8), odd, odd)
	return pairBytes(even, odd, mask)
}

// pairBytes pairs the bytes of two vectors of dwords as words.
func pairBytes(even, odd, mask reg.VecVirtual) []reg.VecVirtual {
	p := ymms(4)
	t := YMM()
	VPSLLD(Imm(16), odd, t)
	VPBLENDW(Imm(0xaa), t, even, p[0])
	VPSRLD(Imm(16), even, t)
	VPBLENDW(Imm(0xaa), odd, t, p[2])
	for i := 0; i < 4; i += 2 {
		VPSRLD(Imm(8), p[i], p[i+1])
		VPAND(mask, p[i+1], p[i+1])
		VPAND(mask, p[i], p[i])
	}
	return p
}

func matVec8(octet Mem) {
	TEXT("matVec8AVX2", NOSPLIT, matVecArgs)
	Pragma("noescape")
	Doc("matVec8AVX2 multiplies rows of a matrix of 8-bit codes with one row of activations.")
	m := newMatVecLoop(64)
	mask := YMM()
	VPBROADCASTD(octet, mask)
	off := GP64()
	m.each(func(label string, rows int) []reg.VecVirtual {
		acc := zeros(rows)
		XORQ(off, off)
		Label(label + "Group")
		for r := range rows {
			p := bytePairs(func(disp int) Mem { return m.w.row(r, disp) }, mask)
			dot := p[0]
			for i := range p {
				VPMADDWD(by(m.t, off, 64*i), p[i], p[i])
				if i > 0 {
					VPADDD(p[i], dot, dot)
				}
			}
			VCVTDQ2PS(dot, dot)
			m.foldGroup(r, dot, acc[r])
		}
		m.advance(1)
		nextGroup(off, label+"Even")
		DECQ(m.left)
		JNZ(LabelRef(label + "Group"))
		return acc
	})
}
