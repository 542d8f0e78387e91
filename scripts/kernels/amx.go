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

func unpackUnit4() {
	TEXT("unpackUnit4AVX2", NOSPLIT, unpackArgs)
	Pragma("noescape")
	Doc("unpackUnit4AVX2 makes bytes of the 4-bit codes of eight rows, from offset bytes into each on.")
	panel, rows := Load(Param("codes"), GP64()), eightRows()
	left, off := Load(Param("groups"), GP64()), Load(Param("offset"), GP64())
	mask := broadcastInt("nibbles", 0x0f0f0f0f)
	Label("group")
	v := ymms(8)
	for i := range v {
		VMOVUPS(by(rows[i], off, 0), v[i])
	}
	for j, eight := range transpose8(v) {
		even := YMM()
		VPAND(mask, eight, even)
		VMOVDQU(even, at(panel, 2*j*unitSums))
		VPSRLD(Imm(4), eight, eight)
		VPAND(mask, eight, eight)
		VMOVDQU(eight, at(panel, (2*j+1)*unitSums))
	}
	ADDQ(U32(unitCodes), panel)
	ADDQ(Imm(32), off)
	DECQ(left)
	JNZ(LabelRef("group"))
	ret()
}

func unpackUnit8(evenFirst Mem) {
	TEXT("unpackUnit8AVX2", NOSPLIT, unpackArgs)
	Pragma("noescape")
	Doc("unpackUnit8AVX2 is unpackUnit4AVX2 for 8-bit codes.")
	order := YMM()
	VBROADCASTI128(evenFirst, order)
	panel, rows := Load(Param("codes"), GP64()), eightRows()
	left, off := Load(Param("groups"), GP64()), Load(Param("offset"), GP64())
	Label("group")
	for half := range 2 {
		v := ymms(8)
		for i := range v {
			VMOVDQU(by(rows[i], off, 32*half), v[i])
			VPSHUFB(order, v[i], v[i])
		}
		for j, four := range transpose8(v) {
			VMOVUPS(four, at(panel, (8*half+j)*unitSums))
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
// strips of 16 rows, whose sums stay in registers for all groups. While a
// group's integers become float32, the matrix unit is at the next group's.
func unitTiles(rows int) {
	name := fmt.Sprintf("tiles%dAMX", rows)
	var shape [8]byte
	shape[lowSums], shape[highSums], shape[lowBytes], shape[highTile] = byte(rows), byte(rows), byte(rows), byte(rows)
	shape[codeTile] = 16
	config := tileConfig(fmt.Sprintf("tileConfig%d", rows), shape)

	TEXT(name, NOSPLIT, "func(sums *float32, products *int32, x, codes, params *byte, groups, strips, tiles, step int)")
	Pragma("noescape")
	Doc(name+" multiplies groups of a panel's first strips with tiles of activations, which lie step bytes apart and of",
		fmt.Sprintf("which it takes %d rows, and adds them to sums. It has products to itself.", rows))
	u := &unit{
		rows: rows, sums: reg.RDI, strip: reg.RAX, block: reg.RBX,
		ahead: reg.RSI, codes: reg.R8, made: reg.R10, narrow: reg.R12, wide: reg.R13,
		x: reg.RDX, params: reg.R9, taken: reg.R14, groups: reg.R11,
	}
	LEAQ(config, reg.RAX)
	tileConfigure(reg.RAX)
	tiles := reg.RCX
	Load(Param("sums"), u.sums)
	Load(Param("products"), u.made)
	LEAQ(at(u.made, productsBytes), u.taken)
	Load(Param("x"), u.block)
	Load(Param("tiles"), tiles)
	MOVQ(U32(64), u.narrow)
	MOVQ(U32(unitSums), u.wide)
	Label("tile")
	XORQ(u.strip, u.strip)
	Label("strip")
	u.stripLoop()
	ADDQ(Imm(64), u.strip)
	strips := Load(Param("strips"), reg.R11)
	SHLQ(Imm(6), strips)
	CMPQ(u.strip, strips)
	JLT(LabelRef("strip"))
	ADDQ(mustResolve("step"), u.block)
	ADDQ(U32(16*unitSums), u.sums)
	DECQ(tiles)
	JNZ(LabelRef("tile"))
	tileRelease()
	ret()
}

// mustResolve returns the memory of a parameter.
func mustResolve(name string) Mem {
	b, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return b.Addr
}

// unit is what a strip is made with.
type unit struct {
	rows                     int
	sums, strip, block       reg.GPPhysical // of the tile; the strip's offset in rows; the tile's first block
	ahead, codes, made       reg.GPPhysical // of the group whose products are made
	narrow, wide             reg.GPPhysical // bytes of a row of blocks and products, and of a panel
	x, params, taken, groups reg.GPPhysical // of the group whose products are taken
	acc                      []reg.VecVirtual
}

func (u *unit) stripLoop() {
	u.acc = zmms(u.rows)
	for r := range u.acc {
		VMOVUPS(by(u.sums, u.strip, unitSums*r), u.acc[r])
	}
	Load(Param("codes"), u.codes)
	Load(Param("params"), u.params)
	Load(Param("groups"), u.groups)
	ADDQ(u.strip, u.codes)
	ADDQ(u.strip, u.params)
	MOVQ(u.block, u.ahead)
	MOVQ(u.block, u.x)
	u.multiply()
	DECQ(u.groups)
	JZ(LabelRef("last"))
	Label("group")
	ADDQ(U32(tileBlock), u.ahead)
	ADDQ(U32(unitCodes), u.codes)
	XCHGQ(u.made, u.taken)
	u.multiply()
	u.fold(u.taken)
	ADDQ(U32(tileBlock), u.x)
	ADDQ(U32(unitParams), u.params)
	DECQ(u.groups)
	JNZ(LabelRef("group"))
	Label("last")
	u.fold(u.made)
	for r := range u.acc {
		VMOVUPS(u.acc[r], by(u.sums, u.strip, unitSums*r))
	}
}

// multiply makes the integers of one group, low bytes' and high bytes'.
func (u *unit) multiply() {
	tileZero(lowSums)
	tileZero(highSums)
	tileLoad(codeTile, u.codes, u.wide, 0)
	tileLoad(lowBytes, u.ahead, u.narrow, 0)
	tileDot(false, lowSums, lowBytes, codeTile)
	tileLoad(highTile, u.ahead, u.narrow, planeBytes)
	tileDot(true, highSums, highTile, codeTile)
	tileStore(lowSums, u.made, u.narrow, 0)
	tileStore(highSums, u.made, u.narrow, planeBytes)
}

// fold adds a group's products to the sums.
func (u *unit) fold(products reg.Register) {
	scale, bias := ZMM(), ZMM()
	VMOVUPS(at(u.params, 0), scale)
	VMOVUPS(at(u.params, 4*unitRows), bias)
	for r, acc := range u.acc {
		dot := ZMM()
		VPSLLD(Imm(8), at(products, planeBytes+64*r), dot)
		VPADDD(at(products, 64*r), dot, dot)
		VCVTDQ2PS(dot, dot)
		VMULPS_BCST(at(u.x, blockScales+4*r), dot, dot)
		VFMADD231PS(scale, dot, acc)
		VFMADD231PS_BCST(at(u.x, blockSums+4*r), bias, acc)
	}
}
