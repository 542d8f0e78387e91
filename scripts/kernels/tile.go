package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Neither avo nor Go's assembler knows AMX, so its instructions are written as
// bytes here. All are VEX.128.0F38.W0; the allocator doesn't see the registers
// in them, which therefore are physical.

// The prefixes that tell instructions of one opcode apart.
const (
	noPrefix = iota
	prefix66
	prefixF3
	prefixF2
)

const sibFollows = 4 // in place of a base

func tileInstruction(name string, code ...byte) {
	Comment(name)
	for _, b := range code {
		Instruction(&ir.Instruction{Opcode: "BYTE", Operands: []Op{Imm(uint64(b))}, ISA: []string{"AMX-INT8"}})
	}
}

// vex returns the prefix of an instruction: high says that index and base of its
// memory are of the upper eight registers; v is its third register.
func vex(prefix, v byte, highIndex, highBase bool) []byte {
	second := byte(0xe2)
	if highIndex {
		second ^= 0x40
	}
	if highBase {
		second ^= 0x20
	}
	return []byte{0xc4, second, ^v&15<<3 | prefix}
}

func modRM(mod, r, rm byte) byte { return mod<<6 | r<<3 | rm }

// tileMemory emits a load or a store: rows of the tile lie step bytes apart,
// from base + disp on.
func tileMemory(name string, prefix, tile byte, base, step reg.GPPhysical, disp int) {
	b, i := base.PhysicalIndex(), step.PhysicalIndex()
	code := append(vex(prefix, 0, i > 7, b > 7), 0x4b,
		modRM(2, tile, sibFollows), byte(i&7)<<3|byte(b&7),
		byte(disp), byte(disp>>8), byte(disp>>16), byte(disp>>24))
	tileInstruction(fmt.Sprintf("%s tmm%d, [%s + %s + %d]", name, tile, base.Asm(), step.Asm(), disp), code...)
}

func tileLoad(tile byte, base, step reg.GPPhysical, disp int) {
	tileMemory("TILELOADD", prefixF2, tile, base, step, disp)
}

func tileStore(tile byte, base, step reg.GPPhysical, disp int) {
	tileMemory("TILESTORED", prefixF3, tile, base, step, disp)
}

func tileZero(tile byte) {
	tileInstruction(fmt.Sprintf("TILEZERO tmm%d", tile), append(vex(prefixF2, 0, false, false), 0x49, modRM(3, tile, 0))...)
}

// tileDot adds a × b to sum: dwords of four products of bytes, those of b
// unsigned and those of a signed or not.
func tileDot(signed bool, sum, a, b byte) {
	name, prefix := "TDPBUUD", byte(noPrefix)
	if signed {
		name, prefix = "TDPBSUD", prefixF3
	}
	tileInstruction(fmt.Sprintf("%s tmm%d, tmm%d, tmm%d", name, sum, a, b),
		append(vex(prefix, b, false, false), 0x5e, modRM(3, sum, a))...)
}

// tileConfigure loads the configuration at base.
func tileConfigure(base reg.GPPhysical) {
	b := base.PhysicalIndex()
	tileInstruction(fmt.Sprintf("LDTILECFG [%s]", base.Asm()),
		append(vex(noPrefix, 0, false, b > 7), 0x49, modRM(0, 0, byte(b&7)))...)
}

func tileRelease() {
	tileInstruction("TILERELEASE", append(vex(noPrefix, 0, false, false), 0x49, modRM(3, 0, 0))...)
}

// tileConfig is the static configuration of tiles of 64 bytes a row.
func tileConfig(name string, rows [8]byte) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	data := [64]byte{0: 1} // palette 1
	for i, n := range rows {
		if n > 0 { // one that isn't there has neither
			data[16+2*i], data[48+i] = 64, n
		}
	}
	for i := 0; i < len(data); i += 8 {
		var word uint64
		for j, b := range data[i : i+8] {
			word |= uint64(b) << (8 * j)
		}
		DATA(i, U64(word))
	}
	return m
}
