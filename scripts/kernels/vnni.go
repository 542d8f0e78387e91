package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The vnni family needs AVX-512 F, BW, DQ, VL and VNNI.
func vnniFamily() {
	matVecVNNI()
	for rows := 1; rows <= 6; rows++ {
		tileVNNI(rows)
	}
}

// matVecVNNI takes 16 groups at a time: their scales are widened together into
// one vector, whose elements a permutation hands to the lanes of two groups.
func matVecVNNI() {
	first := GLOBL("laneGroups", RODATA|NOPTR) // the group of each lane
	for i := range 16 {
		DATA(4*i, U32(i/8))
	}
	nibble, two := dwords("nibblePairs512", 0x000f000f), dwords("two", 2)

	TEXT("matVec4VNNI", NOSPLIT, matVecArgs)
	Pragma("noescape")
	Doc("matVec4VNNI is matVec4AVX2 for processors with AVX-512 VNNI.")
	m := newMatVecLoop(32)
	mask, step, lanes, zero := ZMM(), ZMM(), ZMM(), ZMM()
	VPBROADCASTD(nibble, mask)
	VPBROADCASTD(two, step)
	VPXORD(zero, zero, zero)
	blocks := GP64()
	whole, part := K(), K()
	all := GP32()
	MOVL(U32(0x00ff), all)
	KMOVW(all, part)
	m.each(func(label string, rows int) []reg.VecVirtual {
		acc := zmms(rows)
		for _, a := range acc {
			VMOVDQA64(zero, a)
		}
		Label(label + "Chunk")
		sixteen, count, bits := GP64(), GP64(), GP64()
		MOVQ(U32(16), sixteen)
		MOVQ(m.left, count)
		CMPQ(count, sixteen)
		CMOVQGT(sixteen, count)
		MOVQ(U32(0xffff), bits)
		BZHIQ(count, bits, bits)
		KMOVW(bits.As32(), whole)
		m.fetchParams(rows)
		// All at once: one by one, between the blocks, gives a third less.
		if rows == 1 {
			for line := range 8 {
				m.fetch(rows, 64*line)
			}
		}
		scales := m.chunkScales(rows, whole, acc)
		VMOVDQU32(first, lanes)
		MOVQ(count, blocks)
		SHRQ(Imm(1), blocks)
		JZ(LabelRef(label + "Last"))
		Label(label + "Block")
		if rows == 4 {
			m.fetch(rows, 0)
		}
		m.block(rows, mask, zero, lanes, scales, acc, nil)
		VPADDD(step, lanes, lanes)
		ADDQ(Imm(64), m.w.base)
		ADDQ(Imm(64), m.ahead.base)
		ADDQ(U32(blockBytes), m.t)
		DECQ(blocks)
		JNZ(LabelRef(label + "Block"))
		Label(label + "Last")
		TESTQ(U32(1), m.left)
		JZ(LabelRef(label + "Next"))
		CMPQ(m.left, Imm(16))
		JG(LabelRef(label + "Next"))
		m.block(rows, mask, zero, lanes, scales, acc, &part)
		Label(label + "Next")
		ADDQ(Imm(32), m.s.base)
		ADDQ(Imm(32), m.b.base)
		ADDQ(Imm(64), m.d)
		ADDQ(Imm(64), m.sum)
		SUBQ(Imm(16), m.left)
		JG(LabelRef(label + "Chunk"))
		return halves(acc)
	})
}

// chunkScales returns the scales of up to 16 groups of each row times those of
// the activations, and adds bias × Σ x to the sums.
func (m *matVecLoop) chunkScales(rows int, valid reg.Register, acc []reg.VecVirtual) []reg.VecVirtual {
	d, sum := ZMM(), ZMM()
	VMOVUPS(at(m.d, 0), d)
	VMOVUPS(at(m.sum, 0), sum)
	scales := zmms(rows)
	for r := range scales {
		VPMOVZXWD_Z(m.s.row(r, 0), valid, scales[r])
		VPSLLD(Imm(16), scales[r], scales[r])
		VMULPS(d, scales[r], scales[r])
		b := ZMM()
		VPMOVZXWD_Z(m.b.row(r, 0), valid, b)
		VPSLLD(Imm(16), b, b)
		VFMADD231PS(b, sum, acc[r])
	}
	return scales
}

// block is two groups of every row, or one under a mask.
func (m *matVecLoop) block(rows int, mask, zero, lanes reg.VecVirtual, scales, acc []reg.VecVirtual, part *reg.OpmaskVirtual) {
	x := zmms(4)
	for i := range x {
		VMOVDQU32(at(m.t, 64*i), x[i])
	}
	for r := range rows {
		v, dot := ZMM(), ZMM()
		if part != nil {
			VMOVDQU32_Z(m.w.row(r, 0), *part, v)
		} else {
			VMOVDQU32(m.w.row(r, 0), v)
		}
		VMOVDQA64(zero, dot)
		for i := range x {
			p := ZMM()
			if i == 0 {
				VPANDD(mask, v, p)
			} else {
				VPSRLD(Imm(uint64(4*i)), v, p)
				VPANDD(mask, p, p)
			}
			VPDPWSSD(x[i], p, dot)
		}
		VCVTDQ2PS(dot, dot)
		s := ZMM()
		VPERMPS(scales[r], lanes, s)
		VFMADD231PS(s, dot, acc[r])
	}
}

// halves adds the upper half of each vector to the lower.
func halves(v []reg.VecVirtual) []reg.VecVirtual {
	out := ymms(len(v))
	for i, z := range v {
		VEXTRACTF64X4(Imm(1), z, out[i])
		VADDPS(z.AsY(), out[i], out[i])
	}
	return out
}

// tileVNNI keeps integers of a group and sums of 32 columns in registers.
func tileVNNI(rows int) {
	name := "tile" + string(rune('0'+rows)) + "VNNI"
	TEXT(name, NOSPLIT, tileArgs)
	Pragma("noescape")
	Doc(name + " is the tile of AVX2 for processors with AVX-512 VNNI.")
	l := newTileLoop(rows)
	sums, zero := Load(Param("sums"), GP64()), ZMM()
	VPXORD(zero, zero, zero)
	dots, acc := make([][]reg.VecVirtual, rows), make([][]reg.VecVirtual, rows)
	for r := range acc {
		dots[r], acc[r] = zmms(2), zmms(2)
		VMOVUPS(at(sums, 4*panelRows*r), acc[r][0])
		VMOVUPS(at(sums, 4*panelRows*r+64), acc[r][1])
	}
	Label("group")
	for r := range dots {
		VMOVDQA64(zero, dots[r][0])
		VMOVDQA64(zero, dots[r][1])
	}
	l.pairs("pairs", func(i int) {
		w := zmms(2)
		VMOVDQU32(at(l.codes, i*4*panelRows), w[0])
		VMOVDQU32(at(l.codes, i*4*panelRows+64), w[1])
		for r := range rows {
			x := ZMM()
			VPBROADCASTD(by(l.x[r], l.pair, 64*i), x)
			VPDPWSSD(w[0], x, dots[r][0])
			VPDPWSSD(w[1], x, dots[r][1])
		}
	})
	b := zmms(2)
	VMOVUPS(at(l.params, 4*panelRows), b[0])
	VMOVUPS(at(l.params, 4*panelRows+64), b[1])
	for r := range rows {
		for h, dot := range dots[r] {
			VCVTDQ2PS(dot, dot)
			VMULPS_BCST(by(l.x[r], l.scale, 0), dot, dot)
			VFMADD231PS(at(l.params, 64*h), dot, acc[r][h])
			VFMADD231PS_BCST(by(l.x[r], l.sum, 0), b[h], acc[r][h])
		}
	}
	l.next("group")
	for r := range rows {
		VMOVUPS(acc[r][0], at(sums, 4*panelRows*r))
		VMOVUPS(acc[r][1], at(sums, 4*panelRows*r+64))
	}
	ret()
}
