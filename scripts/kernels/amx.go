package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A matrix unit takes activations in blocks, one for each 16 rows and
// quantisation group:
//
//	[16, 64]uint8, [16, 64]int8  the low and the high bytes of the integers
//	[16]float32, [16]float32     scales, and scale × Σ integers
//
// Of each eight columns the even ones come first, for so nibbles come out of a
// dword. A panel is 64 rows of a matrix; a group of its codes is
//
//	[16, 64, 4]uint8  four columns, row, column
//
// and its scales and biases are [groups, 2, 64]float32. Codes times both planes
// of bytes are exact in 32 bits, and so is 256 × one + the other: the integers
// are those of VNNI, and what becomes of them in float32 is done in its order.
const (
	unitRows      = 64
	unitCodes     = 64 * unitRows // bytes of a group
	unitParams    = 2 * unitRows * 4
	unitSums      = unitRows * 4 // bytes of a row of sums
	planeBytes    = 16 * 64
	blockScales   = 2 * planeBytes
	blockSums     = blockScales + 64
	tileBlock     = blockSums + 64
	productsBytes = 2 * planeBytes // of one group, both planes
)

// The amx family needs AMX-INT8 for products of tiles, AVX-512 F and BW for what
// becomes of them, and AVX2 for the rest.
func amxFamily() {
	order := evenFirst()
	quantiseTile(order)
	unpackUnit4()
	unpackUnit8(order)
	unpackParams("unpackUnitParamsAVX2", unitParams)
	for rows := 4; rows <= 16; rows += 4 {
		unitTiles(rows)
	}
}

// evenFirst is the order of 16 columns in a block.
func evenFirst() Mem {
	m := GLOBL("evenFirst", RODATA|NOPTR)
	for i := range 16 {
		DATA(i, U8(i&8|i%4*2|i%8/4))
	}
	return m
}

func quantiseTile(evenFirst Mem) {
	TEXT("quantiseTileAVX512", NOSPLIT, "func(low *byte, scale, x *float32, groups int)")
	Pragma("noescape")
	Doc("quantiseTileAVX512 makes the same integers as quantiseAVX2 in one row of blocks, whose low bytes and scale of the first group are at low and scale.")
	order := XMM()
	VMOVDQU(evenFirst, order)
	low, scale := Load(Param("low"), GP64()), Load(Param("scale"), GP64())
	x, groups := Load(Param("x"), GP64()), Load(Param("groups"), GP64())
	Label("group")
	exponent, v := integersOf(x)
	storeScale(exponent, v, at(scale, 0), at(scale, blockSums-blockScales))
	for i := 0; i < len(v); i += 2 {
		both, bytes := v[i].AsZ(), XMM()
		VINSERTI64X4(Imm(1), v[i+1], both, both)
		for plane := range 2 {
			if plane == 1 {
				VPSRAD(Imm(8), both, both)
			}
			VPMOVDB(both, bytes)
			VPSHUFB(order, bytes, bytes)
			VMOVDQU(bytes, at(low, planeBytes*plane+8*i))
		}
	}
	ADDQ(U32(256), x)
	ADDQ(U32(tileBlock), low)
	ADDQ(U32(tileBlock), scale)
	DECQ(groups)
	JNZ(LabelRef("group"))
	ret()
}

// sixteenRows loads 32 bytes of each of sixteen rows, of which rows is a table,
// from offset + disp on, and returns their columns of dwords.
func sixteenRows(rows, offset reg.Register, disp int, each func(v reg.VecVirtual)) []reg.VecVirtual {
	// Rows i and i+4 of each eight share a vector.
	v := zmms(8)
	for i := range v {
		row, at := GP64(), i/4*8+i%4
		MOVQ(Mem{Base: rows, Disp: 8 * at}, row)
		VMOVDQU32(by(row, offset, disp), v[i].AsY())
		MOVQ(Mem{Base: rows, Disp: 8 * (at + 4)}, row)
		VINSERTI64X4(Imm(1), by(row, offset, disp), v[i], v[i])
		each(v[i])
	}
	// Of fours, element i of four rows lies in lanes 0 and 2, of element i+4 in
	// the others.
	var fours [2][]reg.VecVirtual
	for half := range fours {
		pairs, q := zmms(4), v[4*half:]
		fours[half] = zmms(4)
		for i := range 2 {
			VPUNPCKLDQ(q[2*i+1], q[2*i], pairs[2*i])
			VPUNPCKHDQ(q[2*i+1], q[2*i], pairs[2*i+1])
		}
		for i := range 2 {
			VPUNPCKLQDQ(pairs[2+i], pairs[i], fours[half][2*i])
			VPUNPCKHQDQ(pairs[2+i], pairs[i], fours[half][2*i+1])
		}
	}
	columns := zmms(8)
	for i := range 4 {
		VSHUFI32X4(Imm(0x88), fours[1][i], fours[0][i], columns[i])
		VSHUFI32X4(Imm(0xdd), fours[1][i], fours[0][i], columns[4+i])
	}
	return columns
}

func unpackUnit4() {
	TEXT("unpackUnit4AVX512", NOSPLIT, unpackArgs)
	Pragma("noescape")
	Doc("unpackUnit4AVX512 makes bytes of the 4-bit codes of sixteen rows, from offset bytes into each on.")
	panel, rows := Load(Param("codes"), GP64()), Load(Param("rows"), GP64())
	left, off := Load(Param("groups"), GP64()), Load(Param("offset"), GP64())
	mask := ZMM()
	VPBROADCASTD(dwords("nibbles", 0x0f0f0f0f), mask)
	Label("group")
	for j, eight := range sixteenRows(rows, off, 0, func(reg.VecVirtual) {}) {
		even := ZMM()
		VPANDD(mask, eight, even)
		VMOVDQU32(even, at(panel, 2*j*unitSums))
		VPSRLD(Imm(4), eight, eight)
		VPANDD(mask, eight, eight)
		VMOVDQU32(eight, at(panel, (2*j+1)*unitSums))
	}
	ADDQ(U32(unitCodes), panel)
	ADDQ(Imm(32), off)
	DECQ(left)
	JNZ(LabelRef("group"))
	ret()
}

func unpackUnit8(evenFirst Mem) {
	TEXT("unpackUnit8AVX512", NOSPLIT, unpackArgs)
	Pragma("noescape")
	Doc("unpackUnit8AVX512 is unpackUnit4AVX512 for 8-bit codes.")
	order := ZMM()
	VBROADCASTI32X4(evenFirst, order)
	panel, rows := Load(Param("codes"), GP64()), Load(Param("rows"), GP64())
	left, off := Load(Param("groups"), GP64()), Load(Param("offset"), GP64())
	Label("group")
	for half := range 2 {
		columns := sixteenRows(rows, off, 32*half, func(v reg.VecVirtual) { VPSHUFB(order, v, v) })
		for j, four := range columns {
			VMOVDQU32(four, at(panel, (8*half+j)*unitSums))
		}
	}
	ADDQ(U32(unitCodes), panel)
	ADDQ(Imm(64), off)
	DECQ(left)
	JNZ(LabelRef("group"))
	ret()
}

// The tiles of a product, and the registers that its loops keep.
const (
	lowSums, highSums  = 0, 1
	lowBytes, highTile = 2, 3
	codeTile           = 4
)

// unitTiles goes through tiles of activations, and for each through the panel's
// strips of 16 rows, whose sums stay in registers for all groups. While one
// strip's integers become float32, the matrix unit is at the next strip's, so
// that nothing waits for what a tile has just stored.
func unitTiles(rows int) {
	name := fmt.Sprintf("tiles%dAMX", rows)
	var shape [8]byte
	shape[lowSums], shape[highSums], shape[lowBytes], shape[highTile] = byte(rows), byte(rows), byte(rows), byte(rows)
	shape[codeTile] = 16
	config := tileConfig(fmt.Sprintf("tileConfig%d", rows), shape)

	TEXT(name, NOSPLIT, "func(sums *float32, products *int32, x, codes, params *byte, groups, strips, tiles, step int)")
	Pragma("noescape")
	Doc(name+" multiplies groups of a panel's first strips with tiles of activations, which lie step bytes apart and of",
		fmt.Sprintf("which it takes %d rows, and adds them to sums. Products holds the integers of two strips.", rows))
	u := &unit{
		rows: rows, tiles: reg.RCX, sums: reg.RDI, strip: reg.RAX, block: reg.RBX,
		next: reg.RSI, codes: reg.R8, made: reg.R10, narrow: reg.R12, wide: reg.R13,
		x: reg.RDX, params: reg.R9, taken: reg.R14, left: reg.R11,
	}
	LEAQ(config, reg.RAX)
	tileConfigure(reg.RAX)
	Load(Param("tiles"), u.tiles)
	Load(Param("sums"), u.sums)
	Load(Param("x"), u.block)
	Load(Param("products"), u.made)
	Load(Param("groups"), u.taken)
	SHLQ(Imm(11), u.taken) // the bytes of a strip's products
	ADDQ(u.made, u.taken)
	MOVQ(U32(64), u.narrow)
	MOVQ(U32(unitSums), u.wide)
	u.first()
	Label("tile")
	XORQ(u.strip, u.strip)
	Label("strip")
	u.findNext()
	u.stripLoop()
	ADDQ(Imm(64), u.strip)
	strips := Load(Param("strips"), u.left)
	SHLQ(Imm(6), strips)
	CMPQ(u.strip, strips)
	JLT(LabelRef("strip"))
	ADDQ(param("step"), u.block)
	ADDQ(U32(16*unitSums), u.sums)
	DECQ(u.tiles)
	JNZ(LabelRef("tile"))
	tileRelease()
	ret()
}

// param returns the memory of a parameter.
func param(name string) Mem {
	b, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return b.Addr
}

// unit is what a strip is made with.
type unit struct {
	rows               int
	tiles              reg.GPPhysical // that are left
	sums, strip, block reg.GPPhysical // of the tile; the strip's offset in rows; the tile's first block
	next, codes, made  reg.GPPhysical // a group of the next strip, whose products are made
	x, params, taken   reg.GPPhysical // a group of this strip, whose products are taken
	left               reg.GPPhysical // groups
	narrow, wide       reg.GPPhysical // bytes of a row of blocks and products, and of a panel
	acc                []reg.VecVirtual
}

// first makes the products of the first strip.
func (u *unit) first() {
	Load(Param("codes"), u.codes)
	Load(Param("groups"), u.left)
	MOVQ(u.block, u.next)
	Label("first")
	u.multiply()
	ADDQ(U32(productsBytes), u.made)
	DECQ(u.left)
	JNZ(LabelRef("first"))
	u.rewind(u.made)
}

// rewind brings pointers to a strip's products back to its first group.
func (u *unit) rewind(pointers ...reg.GPPhysical) {
	bytes := Load(Param("groups"), u.left)
	SHLQ(Imm(11), bytes)
	for _, p := range pointers {
		SUBQ(bytes, p)
	}
}

// findNext sets next and codes to the first group of the strip after this one,
// in this tile or the following; behind the last, next is zero.
func (u *unit) findNext() {
	Load(Param("codes"), u.codes)
	MOVQ(u.block, u.next)
	strips := Load(Param("strips"), u.left)
	DECQ(strips)
	SHLQ(Imm(6), strips)
	CMPQ(u.strip, strips)
	JGE(LabelRef("followingTile"))
	LEAQ(by(u.codes, u.strip, 64), u.codes)
	JMP(LabelRef("found"))
	Label("followingTile")
	ADDQ(param("step"), u.next)
	CMPQ(u.tiles, Imm(1))
	JNE(LabelRef("found"))
	XORQ(u.next, u.next)
	Label("found")
}

func (u *unit) stripLoop() {
	u.acc = zmms(u.rows)
	for r := range u.acc {
		VMOVUPS(by(u.sums, u.strip, unitSums*r), u.acc[r])
	}
	Load(Param("params"), u.params)
	Load(Param("groups"), u.left)
	ADDQ(u.strip, u.params)
	MOVQ(u.block, u.x)
	XCHGQ(u.made, u.taken)
	Label("group")
	TESTQ(u.next, u.next)
	JZ(LabelRef("fold"))
	u.multiply()
	Label("fold")
	u.fold()
	ADDQ(U32(tileBlock), u.x)
	ADDQ(U32(unitParams), u.params)
	ADDQ(U32(productsBytes), u.made)
	ADDQ(U32(productsBytes), u.taken)
	DECQ(u.left)
	JNZ(LabelRef("group"))
	u.rewind(u.made, u.taken)
	for r := range u.acc {
		VMOVUPS(u.acc[r], by(u.sums, u.strip, unitSums*r))
	}
}

// multiply makes the integers of one group, low bytes' and high bytes', and goes
// on to the next.
func (u *unit) multiply() {
	tileZero(lowSums)
	tileZero(highSums)
	tileLoad(codeTile, u.codes, u.wide, 0)
	tileLoad(lowBytes, u.next, u.narrow, 0)
	tileDot(false, lowSums, lowBytes, codeTile)
	tileLoad(highTile, u.next, u.narrow, planeBytes)
	tileDot(true, highSums, highTile, codeTile)
	tileStore(lowSums, u.made, u.narrow, 0)
	tileStore(highSums, u.made, u.narrow, planeBytes)
	ADDQ(U32(tileBlock), u.next)
	ADDQ(U32(unitCodes), u.codes)
}

// fold adds a group's products to the sums.
func (u *unit) fold() {
	scale, bias := ZMM(), ZMM()
	VMOVUPS(at(u.params, 0), scale)
	VMOVUPS(at(u.params, 4*unitRows), bias)
	for r, acc := range u.acc {
		dot := ZMM()
		VPSLLD(Imm(8), at(u.taken, planeBytes+64*r), dot)
		VPADDD(at(u.taken, 64*r), dot, dot)
		VCVTDQ2PS(dot, dot)
		VMULPS_BCST(at(u.x, blockScales+4*r), dot, dot)
		VFMADD231PS(scale, dot, acc)
		VFMADD231PS_BCST(at(u.x, blockSums+4*r), bias, acc)
	}
}
