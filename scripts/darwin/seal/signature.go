package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// A signature is a super blob, a table of blobs by slot: the code directory, a
// set of requirements, and the certificates, which an ad hoc one has none of.
// All numbers in it are big-endian.
const (
	magicSignature    = 0xfade0cc0
	magicDirectory    = 0xfade0c02
	magicRequirements = 0xfade0c01
	magicWrapper      = 0xfade0b01

	slotDirectory    = 0
	slotInfo         = 1
	slotRequirements = 2
	slotResources    = 3
	slotWrapper      = 0x10000
)

// The code directory's flags that matter here.
const (
	flagAdhoc   = 0x2
	flagRuntime = 0x10000
)

const (
	pageBits         = 12 // pages of 4 KiB, as codesign has them
	hashSHA256       = 2
	directoryVersion = 0x20500 // the first with a version of the runtime
	mainBinary       = 1
)

// header is the fixed part of a code directory.
type header struct {
	Magic, Length, Version, Flags                               uint32
	HashOffset, IdentOffset, SpecialSlots, CodeSlots, CodeLimit uint32
	HashSize, HashType, Platform, PageSize                      uint8
	_, Scatter, Team, _                                         uint32
	CodeLimit64, ExecBase, ExecLimit, ExecFlags                 uint64
	Runtime, PreEncrypt                                         uint32
}

// directory is a code directory: the digests of the code's pages and of what
// else the signature binds.
type directory struct {
	header
	id    string
	slots map[int][]byte // digests of what is no code, by slot
	pages [][]byte
	sum   [sha256.Size]byte // of the directory itself, which names the program
}

// requirements is an empty set: an ad hoc signature asks for nothing.
var requirements = blob(magicRequirements, make([]byte, 4))

func blob(magic uint32, body []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, magic)
	b = binary.BigEndian.AppendUint32(b, uint32(8+len(body)))
	return append(b, body...)
}

// signatureSize is how long the signature of a program will be.
func signatureSize(id string, code int) int {
	pages := (code + 1<<pageBits - 1) >> pageBits
	length := binary.Size(header{}) + len(id) + 1 + (slotResources+pages)*sha256.Size
	length += 12 + 3*8 + len(requirements) + len(blob(magicWrapper, nil))
	return (length + 15) &^ 15
}

// sign returns the ad hoc signature of code, with the hardened runtime. special
// is what else it binds, by slot; runtime the SDK's version.
func sign(id string, code []byte, special map[int][]byte, execLimit uint64, runtime uint32) []byte {
	h := header{
		Magic: magicDirectory, Version: directoryVersion, Flags: flagAdhoc | flagRuntime,
		SpecialSlots: slotResources, CodeSlots: uint32((len(code) + 1<<pageBits - 1) >> pageBits), CodeLimit: uint32(len(code)),
		HashSize: sha256.Size, HashType: hashSHA256, PageSize: pageBits,
		ExecLimit: execLimit, ExecFlags: mainBinary, Runtime: runtime,
	}
	h.IdentOffset = uint32(binary.Size(h))
	h.HashOffset = h.IdentOffset + uint32(len(id)) + 1 + h.SpecialSlots*sha256.Size
	h.Length = h.HashOffset + h.CodeSlots*sha256.Size
	var d bytes.Buffer
	binary.Write(&d, binary.BigEndian, h)
	d.WriteString(id + "\x00")
	for slot := slotResources; slot > 0; slot-- { // they stand before the pages, backwards
		sum := sha256.Sum256(special[slot])
		d.Write(sum[:])
	}
	for at := 0; at < len(code); at += 1 << pageBits {
		sum := sha256.Sum256(code[at:min(at+1<<pageBits, len(code))])
		d.Write(sum[:])
	}
	return super(map[int][]byte{slotDirectory: d.Bytes(), slotRequirements: requirements, slotWrapper: blob(magicWrapper, nil)})
}

// super joins blobs, in the order of their slots.
func super(blobs map[int][]byte) []byte {
	order := []int{slotDirectory, slotRequirements, slotWrapper}
	at := 12 + 8*len(order)
	index := binary.BigEndian.AppendUint32(nil, uint32(len(order)))
	var bodies []byte
	for _, slot := range order {
		index = binary.BigEndian.AppendUint32(index, uint32(slot))
		index = binary.BigEndian.AppendUint32(index, uint32(at+len(bodies)))
		bodies = append(bodies, blobs[slot]...)
	}
	return blob(magicSignature, append(index, bodies...))
}

var errSignature = errors.New("the signature is cut or malformed")

// parseDirectory finds the code directory of a signature and reads it.
func parseDirectory(signature []byte) (*directory, error) {
	b := binary.BigEndian
	if len(signature) < 12 || b.Uint32(signature) != magicSignature {
		return nil, errors.New("the executable is not signed")
	}
	for i := range int(b.Uint32(signature[8:])) {
		entry := 12 + 8*i
		if entry+8 > len(signature) {
			return nil, errSignature
		}
		if b.Uint32(signature[entry:]) == slotDirectory {
			at := int(b.Uint32(signature[entry+4:]))
			if at > len(signature) {
				return nil, errSignature
			}
			return readDirectory(signature[at:])
		}
	}
	return nil, errors.New("the signature has no code directory")
}

func readDirectory(data []byte) (*directory, error) {
	d := &directory{slots: map[int][]byte{}}
	if _, err := binary.Decode(data, binary.BigEndian, &d.header); err != nil || d.Magic != magicDirectory {
		return nil, errSignature
	}
	first := int(d.HashOffset) - int(d.SpecialSlots)*sha256.Size
	end := int(d.HashOffset) + int(d.CodeSlots)*sha256.Size
	if int(d.Length) > len(data) || end > int(d.Length) || first < 0 || int(d.IdentOffset) > first {
		return nil, errSignature
	}
	if d.HashType != hashSHA256 || d.HashSize != sha256.Size {
		return nil, fmt.Errorf("the signature's digests are of kind %d, want SHA-256", d.HashType)
	}
	d.sum = sha256.Sum256(data[:d.Length])
	name, _, _ := bytes.Cut(data[d.IdentOffset:first], []byte{0})
	d.id = string(name)
	for i := range int(d.SpecialSlots) {
		at := int(d.HashOffset) - (i+1)*sha256.Size
		d.slots[i+1] = data[at : at+sha256.Size]
	}
	for i := range int(d.CodeSlots) {
		at := int(d.HashOffset) + i*sha256.Size
		d.pages = append(d.pages, data[at:at+sha256.Size])
	}
	return d, nil
}
